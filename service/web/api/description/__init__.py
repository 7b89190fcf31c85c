"""The description of the API (OpenAPI), made from its own routes."""
