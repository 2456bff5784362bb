"""What runs beside an editor: the language server, and plugins that ship in the wheel."""
