"""Pure work on texts: their length, normal forms, differences and times."""
