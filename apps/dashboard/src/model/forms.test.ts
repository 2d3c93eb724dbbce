import assert from 'node:assert/strict'
import { test } from 'node:test'
import { crumbsOf, decodeText, joinPath, parentOf, sortEntries } from './file-path.ts'
import {
  findHiddenParts,
  toNetworkForm,
  toNetworkUpdate,
  toUpdateWithName,
} from './network-form.ts'
import { toCreateRequest } from './new-sandbox.ts'
import { toBuildRequest } from './new-template.ts'
import { portUrl } from './port-url.ts'
import { reconnectDelayMs } from './reconnect.ts'
import { parseRoute, recordingPath, sandboxPath, templatePath } from './route.ts'

const form = {
  template: ' base ',
  timeout: '10m',
  onTimeout: 'kill',
  internet: 'all',
  allowed: '',
  variables: '',
  metadata: '',
}

test('a new sandbox has only what the form says', () => {
  assert.deepEqual(toCreateRequest(form), { templateID: 'base', timeout: 600 })
  const full = {
    ...form,
    onTimeout: 'pause',
    internet: 'some',
    allowed: 'pypi.org,\n1.1.1.1',
    variables: 'A=b=c\n\nD=',
    metadata: 'x=y',
  }
  assert.deepEqual(toCreateRequest(full), {
    templateID: 'base',
    timeout: 600,
    autoPause: true,
    network: { allowOut: ['pypi.org', '1.1.1.1'], denyOut: ['0.0.0.0/0'] },
    envVars: { A: 'b=c', D: '' },
    metadata: { x: 'y' },
  })
  assert.equal('allow_internet_access' in toCreateRequest({ ...form, internet: 'none' }), true)
})

test('mistakes in the form are named', () => {
  assert.throws(() => toCreateRequest({ ...form, timeout: 'soon' }), /timeout must be/)
  assert.throws(
    () => toCreateRequest({ ...form, variables: 'no equals sign' }),
    /“no equals sign” is not NAME=value/,
  )
})

test('a rebuild keeps the name of its template', () => {
  const template = {
    name: ' mine ',
    dockerfile: 'FROM base',
    startCommand: '',
    readyCommand: ' true ',
    cpuCount: '2',
    memoryMb: '512',
  }
  const rest = { dockerfile: 'FROM base', readyCmd: 'true', cpuCount: 2, memoryMB: 512 }
  assert.deepEqual(toBuildRequest(template, false), { alias: 'mine', ...rest })
  assert.deepEqual(toBuildRequest(template, true), rest)
})

for (const network of [
  {},
  { denyOut: ['0.0.0.0/0'] },
  { allowOut: ['pypi.org', '1.1.1.1'], denyOut: ['0.0.0.0/0'] },
  { allowOut: ['8.8.8.8'], denyOut: ['8.8.0.0/16'] },
  { egressProxy: { address: 'proxy.example.com:1080' } },
]) {
  test(`rules ${JSON.stringify(network)} survive the form`, () => {
    const {
      allowOut = [],
      denyOut = [],
      ...rest
    } = network as { allowOut?: string[]; denyOut?: string[] }
    assert.deepEqual(toNetworkUpdate(toNetworkForm(network)), { allowOut, denyOut, ...rest })
  })
}

test('rules that the server does not return whole are not offered for change', () => {
  assert.equal(findHiddenParts(undefined), undefined)
  assert.equal(findHiddenParts({ rules: { 'a.example': [] } }), 'header rules')
  const egressProxy = { address: 'a:1', username: 'u' }
  assert.match(findHiddenParts({ egressProxy }) ?? '', /password/)
})

test('paths map to pages and back', () => {
  assert.deepEqual(parseRoute('/'), { page: 'now' })
  assert.deepEqual(parseRoute(sandboxPath('iabc')), {
    page: 'sandbox',
    id: 'iabc',
    tab: 'overview',
  })
  assert.deepEqual(parseRoute(sandboxPath('iabc', 'logs')), {
    page: 'sandbox',
    id: 'iabc',
    tab: 'logs',
  })
  assert.deepEqual(parseRoute(templatePath('team/a b', 'x')), {
    page: 'template',
    id: 'team/a b',
    buildId: 'x',
  })
  assert.deepEqual(parseRoute(recordingPath('1-iabc-2')), { page: 'recording', id: '1-iabc-2' })
  for (const page of ['wall', 'recordings', 'templates', 'team'] as const) {
    assert.deepEqual(parseRoute(`/${page}`), { page })
  }
  for (const path of ['/nowhere', '/sandboxes/iabc/none', '/a/b/c/d', '/secrets/x', '/%']) {
    assert.deepEqual(parseRoute(path), { page: 'unknown' }, path)
  }
})

test('a port opens on the host of its sandbox', () => {
  const addresses = { sandboxUrl: 'http://127.0.0.1:3000', sandboxDomain: 'localhost:3000' }
  assert.equal(portUrl(addresses, 'iabc', '8000'), 'http://8000-iabc.localhost:3000/')
  for (const port of ['', '0', '65536', '80a', '-1', '1e3', '8000.evil.example']) {
    assert.equal(portUrl(addresses, 'iabc', port), undefined, port)
  }
})

test('folders come first, and paths are joined and split', () => {
  const entries = [
    { name: 'b', path: '/b' },
    { name: 'z', path: '/z', type: 'FILE_TYPE_DIRECTORY' },
    { name: 'a', path: '/a' },
  ]
  assert.deepEqual(
    sortEntries(entries).map(({ name }) => name),
    ['z', 'a', 'b'],
  )
  assert.deepEqual(
    [joinPath('/', 'a'), joinPath('/a', 'b'), parentOf('/a/b'), parentOf('/a')],
    ['/a', '/a/b', '/a', '/'],
  )
  assert.deepEqual(
    crumbsOf('/a/b').map(({ path }) => path),
    ['/', '/a', '/a/b'],
  )
})

test('only bytes that survive an editor are text', () => {
  assert.equal(decodeText(new TextEncoder().encode('\ufeffä\n')), '\ufeffä\n')
  assert.equal(decodeText(new Uint8Array([0])), undefined)
  assert.equal(decodeText(new Uint8Array([0xff, 0xfe])), undefined)
})

test('reconnects come at once, then more slowly, but never stop', () => {
  assert.deepEqual([0, 1, 2, 10, 1_000].map(reconnectDelayMs), [500, 1_000, 2_000, 10_000, 10_000])
})

test('allowing a denied name keeps all other rules', () => {
  const rules = { allowOut: ['pypi.org'], denyOut: ['0.0.0.0/0', '1.1.1.1'] }
  const expected = { allowOut: ['pypi.org', 'a.example'], denyOut: rules.denyOut }
  assert.deepEqual(toUpdateWithName(rules, 'a.example'), expected)
  assert.deepEqual(toUpdateWithName(expected, 'a.example'), expected)
  const closed = { denyOut: ['0.0.0.0/0'] }
  assert.deepEqual(toUpdateWithName(closed, 'a.example').allowOut, ['a.example'])
})
