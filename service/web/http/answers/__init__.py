"""Headers and forms that the answers of all routes share."""
