"""Shardings of GSPMD, read and written."""
