// Runs Bluesky's own server (PDS), for start.mjs.
//
//   node server.mjs MODULES SETTINGS
//
// MODULES has the installed packages; SETTINGS is JSON: the server's public URL, and its environment. Prints its port
// when it listens, and ends with stdin.

import { createRequire } from 'node:module'
import { join } from 'node:path'

process.stdin.resume().on('end', () => process.exit(0))

const [modules, settings] = process.argv.slice(2)
const { PDS, envToCfg, envToSecrets } = createRequire(join(modules, 'package.json'))('@atproto/pds')

const { publicUrl, environment } = JSON.parse(settings)
const config = envToCfg(environment)
config.service.port = 0
config.service.publicUrl = publicUrl
const server = await PDS.create(config, envToSecrets(environment))
console.log((await server.start()).address().port)
