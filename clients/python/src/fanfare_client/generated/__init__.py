"""Generated from api/openapi.json by clients/generator/generate. Do not edit."""
