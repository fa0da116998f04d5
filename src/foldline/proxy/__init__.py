"""An HTTP proxy between an agent and its provider: passes requests on, records them, and folds long conversations.

application.py (ASGI) → exchange.py (one request and its response) → upstream_client.py (the provider). interception.py
is the interface between these modules and the modules that record and fold.
"""
