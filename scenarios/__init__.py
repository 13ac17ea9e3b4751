"""The scenarios that ship with Graphwarden, as package data."""
