"""Monthly invoices of a small shop."""
