"""Ground floor: components, randomness, the network, graphs. Imports nothing else of the project."""
