#!/usr/bin/env node
// Committed, so that npm has something to link before the first build.
import "../dist/main.js";
