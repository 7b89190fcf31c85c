"""Projects and the sites that are made from them."""
