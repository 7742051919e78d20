"""Notebook 08: do scores find members, or do they find domains (Fu, Tables 3 and 7-15)?"""
