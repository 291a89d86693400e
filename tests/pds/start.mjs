// Runs Bluesky's own server (PDS) and a directory of identities (PLC) on loopback, with a gateway before them.
//
//   node start.mjs MODULES DATA
//
// MODULES has the installed packages, DATA takes the server's files. Prints one line of JSON when all listen, and ends
// with stdin, so that it never outlives the tests.
//
// The gateway listens twice. By TLS it is the server under its public name. By HTTP it stands where the sandbox
// stands: the first segment of the path is the host that was meant, so that the directory, the hosts of the accounts'
// handles and the public view have their real names. The server is a process of its own (server.mjs), which tests may
// kill and start again on the same data.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import http from 'node:http'
import https from 'node:https'
import { randomBytes } from 'node:crypto'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

process.stdin.resume().on('end', () => {
  // Also one that a test has stopped, which would not notice its own end of input.
  server?.kill('SIGKILL')
  process.exit(0)
})

const [modules, data] = process.argv.slice(2)
const require = createRequire(join(modules, 'package.json'))
const { MockDatabase, PlcServer } = require('@did-plc/server')
const { generate } = require('selfsigned')

const NAME = 'pds.localhost'
const DIRECTORY = 'plc.directory'
const VIEW = 'public.api.bsky.app'

const listen = (server) =>
  new Promise((resolve, reject) => {
    server.on('error', reject).listen(0, '127.0.0.1', () => resolve(server.address().port))
  })

// Methods whose next answer is lost.
const lost = new Set()
// Calls to the server by TLS.
let calls = 0
// The process of the server, and its port.
let server
let serverPort

/** Passes a request on, and its answer back unless it is to be lost. */
function pass(request, response, { port, host, path }) {
  const options = { port, path, method: request.method, headers: { ...request.headers, host } }
  const onward = http.request(options, (answer) => {
    const method = new URL(path, 'http://localhost').pathname.replace('/xrpc/', '')
    if (lost.delete(method)) {
      // The server has done what was asked.
      answer.resume().on('end', () => request.socket.destroy())
      return
    }
    response.writeHead(answer.statusCode, answer.headers)
    answer.pipe(response)
  })
  onward.on('error', () => response.destroy())
  request.pipe(onward)
}

function refuse(response, status, message) {
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(JSON.stringify({ error: 'InvalidRequest', message }))
}

/** Answers a request to the real internet. */
function internet(request, response) {
  const [, host, path] = /^\/([^/]+)(\/.*)$/.exec(request.url) ?? []
  if (host === DIRECTORY) {
    pass(request, response, { port: directoryPort, host, path })
  } else if (host === `${NAME}:${publicPort}` || host?.endsWith('.test')) {
    pass(request, response, { port: serverPort, host, path })
  } else if (host === VIEW && path.includes('resolveHandle')) {
    // The public view does not know the accounts of a server that it does not index.
    refuse(response, 400, 'Unable to resolve handle')
  } else if (host === VIEW) {
    refuse(response, 400, 'Profile not found')
  } else {
    response.destroy()
  }
}

/**
 * Answers the tests: the number of calls by TLS, after noting a method whose next answer is lost, sending a signal to
 * the server, or starting one that was killed.
 */
async function control(request, response) {
  const asked = new URL(request.url, 'http://localhost').searchParams
  const signal = asked.get('signal')
  if (asked.has('lose')) lost.add(asked.get('lose'))
  if (signal) server.kill(signal)
  if (signal === 'SIGKILL') await once(server, 'exit')
  if (asked.has('start')) await start()
  response.end(JSON.stringify({ calls }))
}

async function start() {
  const program = fileURLToPath(new URL('server.mjs', import.meta.url))
  server = spawn(process.execPath, [program, modules, JSON.stringify(settings)], { stdio: ['pipe', 'pipe', 'inherit'] })
  const [line] = await once(createInterface(server.stdout), 'line')
  serverPort = Number(line)
}

const certificate = await generate([{ name: 'commonName', value: NAME }], {
  keyType: 'ec',
  algorithm: 'sha256',
  notBeforeDate: new Date(Date.now() - 3_600_000),
  notAfterDate: new Date(Date.now() + 86_400_000),
  extensions: [
    { name: 'basicConstraints', cA: false },
    { name: 'subjectAltName', altNames: [{ type: 2, value: NAME }] },
  ],
})
const certificateFile = join(data, 'certificate.pem')
writeFileSync(certificateFile, certificate.cert)

const publicPort = await listen(
  https.createServer({ key: certificate.private, cert: certificate.cert }, (request, response) => {
    calls += 1
    pass(request, response, { port: serverPort, host: request.headers.host, path: request.url })
  }),
)
const internetPort = await listen(http.createServer(internet))
const controlPort = await listen(http.createServer(control))

const directory = PlcServer.create({ db: new MockDatabase(), port: 0 })
const directoryPort = (await directory.start()).address().port

const secret = () => randomBytes(32).toString('hex')
const settings = {
  publicUrl: `https://${NAME}:${publicPort}`,
  environment: {
    devMode: true,
    hostname: NAME,
    dataDirectory: data,
    blobstoreDiskLocation: join(data, 'blobs'),
    didPlcUrl: `http://127.0.0.1:${directoryPort}`,
    serviceHandleDomains: ['.test'],
    inviteRequired: false,
    adminPassword: secret(),
    jwtSecret: secret(),
    plcRotationKeyK256PrivateKeyHex: secret(),
  },
}
await start()

console.log(
  JSON.stringify({
    service: settings.publicUrl,
    certificate: certificateFile,
    server: `http://127.0.0.1:${internetPort}/${NAME}:${publicPort}`,
    internet: `http://127.0.0.1:${internetPort}`,
    control: `http://127.0.0.1:${controlPort}`,
  }),
)
