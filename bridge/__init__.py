"""Launchers: what turns an allocation into running processes, on pretended nodes of this machine or on Kubernetes."""
