/** Requests whose acknowledgement is a promise, with checks that the promise is kept. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { waitFor } from '@atoll/kit/wait'
import { addCounting, checkCounter, print, stateOf } from './acknowledged-account.ts'
import type { Account, AcknowledgedSandbox } from './acknowledged-account.ts'
import { envdHeaders } from '../cloud-by-hand.ts'
import type { CloudByHand, HandSandbox } from '../cloud-by-hand.ts'
import type { Random } from '../mutations.ts'
import { send } from '../wire.ts'
import type { Reply } from '../wire.ts'

export interface Work {
  /** Sends the request. The server may die as soon as this resolves. */
  request(): Promise<Reply>
  readonly status: number
  /** Records the promise in the account right after the acknowledgement. */
  enter?(reply: Reply): void
  /** Checks the promise after the restart. */
  check(reply: Reply): Promise<void>
}

export type Prepare = () => Promise<Work>

export function createWorks(
  account: Account,
  { cloud, random }: { readonly cloud: CloudByHand; readonly random: Random },
): Readonly<Record<string, Prepare>> {
  const { sandboxes, snapshots, templates, secrets } = account
  const post = (path: string, body: object) => cloud.platform('POST', path, body)

  const works = {
    async create() {
      const mark = randomUUID()
      const body = { templateID: 'base', timeout, envVars: { MARK: mark }, metadata: { mark } }
      return {
        request: () => post('/v2/sandboxes', body),
        status: 201,
        async check(reply) {
          const sandbox = sandboxIn(reply)
          const path = `/sandboxes/${sandbox.sandboxID}`
          const { json } = await cloud.platform('GET', path)
          assert.deepEqual(Object(json).metadata, { mark })
          assert.equal(await print(cloud, sandbox, 'echo $MARK'), `${mark}\n`)
          await addCounting(account, cloud, sandbox)
        },
      }
    },

    async write() {
      const { sandbox } = pick()
      const mark = randomUUID()
      const path = `/home/user/${mark}`
      const headers = { ...envdHeaders(sandbox), 'Content-Type': 'application/octet-stream' }
      const call = { method: 'POST', path: `/files?path=${path}&username=root`, headers }
      return {
        request: () => send(cloud.installation.url, { ...call, body: mark }),
        status: 200,
        check: async () => assert.equal(await print(cloud, sandbox, `cat ${path}`), mark),
      }
    },

    async pause() {
      const one = pick()
      const { sandboxID } = one.sandbox
      const mark = randomUUID()
      await print(cloud, one.sandbox, `echo ${mark} > /home/user/before-pause`)
      await checkCounter(cloud, one)
      return {
        request: () => post(`/sandboxes/${sandboxID}/pause`, {}),
        status: 204,
        enter: () => void sandboxes.delete(sandboxID),
        async check() {
          assert.equal(await stateOf(cloud, sandboxID), 'paused')
          await resumed(one)
          const text = await print(cloud, one.sandbox, 'cat /home/user/before-pause')
          assert.equal(text, `${mark}\n`)
        },
      }
    },

    async resume() {
      const one = pick()
      const { sandboxID } = one.sandbox
      await checkCounter(cloud, one)
      const paused = await post(`/sandboxes/${sandboxID}/pause`, {})
      assert.equal(paused.status, 204, paused.text)
      return {
        request: () => post(`/sandboxes/${sandboxID}/connect`, { timeout }),
        status: 201,
        check: () => checkCounter(cloud, one),
      }
    },

    async fork() {
      const one = pick()
      await checkCounter(cloud, one)
      const { count, sandbox } = one
      return {
        request: () => post(`/sandboxes/${sandbox.sandboxID}/fork`, { timeout, count: 2 }),
        status: 201,
        async check({ json, text }) {
          const made: { readonly sandbox?: HandSandbox }[] = Object(json)
          const copies = made.flatMap((each) => each.sandbox ?? [])
          assert.equal(copies.length, 2, text)
          for (const copy of copies) await checkCopy(copy, count)
        },
      }
    },

    async snapshot() {
      const one = pick()
      await checkCounter(cloud, one)
      const { count, sandbox } = one
      return {
        request: () => post(`/sandboxes/${sandbox.sandboxID}/snapshots`, {}),
        status: 201,
        enter: (reply) => void snapshots.set(snapshotIn(reply), count),
        async check(reply) {
          const body = { templateID: snapshotIn(reply), timeout }
          const made = await post('/v2/sandboxes', body)
          assert.equal(made.status, 201, made.text)
          await checkCopy(sandboxIn(made), count)
        },
      }
    },

    async deleteSnapshot() {
      const { sandbox } = pick()
      const made = await post(`/sandboxes/${sandbox.sandboxID}/snapshots`, {})
      assert.equal(made.status, 201, made.text)
      const id = snapshotIn(made)
      return {
        request: () => cloud.platform('DELETE', `/templates/${encodeURIComponent(id)}`),
        status: 204,
        enter: () => void account.deleted.add(id),
        check: () => checkNoTemplate(id),
      }
    },

    async build() {
      const { name, mark, templateId, start } = await requestBuild()
      return {
        request: start,
        status: 200,
        enter: () => void templates.set(name, { templateId, mark }),
        check: () => checkTemplate(name),
      }
    },

    async deleteTemplate() {
      const [known] = templates.keys()
      const name = known ?? (await buildOne())
      const { templateId = '' } = templates.get(name) ?? {}
      return {
        request: () => cloud.platform('DELETE', `/templates/${templateId}`),
        status: 204,
        enter() {
          templates.delete(name)
          account.deleted.add(templateId)
        },
        check: () => checkNoTemplate(name),
      }
    },

    async secret() {
      const name = `s-${randomUUID()}`
      return {
        request: () => post('/secrets', { name, value: 'the value' }),
        status: 201,
        enter: () => void secrets.set(name, 1),
        check: () => checkSecret(name, 1),
      }
    },

    async updateSecret() {
      const [name, version] = await someSecret()
      return {
        request: () => post(`/secrets/${name}`, { value: 'another value' }),
        status: 200,
        enter: () => void secrets.set(name, version + 1),
        check: () => checkSecret(name, version + 1),
      }
    },

    async deleteSecret() {
      const [name] = await someSecret()
      return {
        request: () => cloud.platform('DELETE', `/secrets/${name}`),
        status: 204,
        enter() {
          secrets.delete(name)
          account.deletedSecrets.add(name)
        },
        check: () => checkSecret(name, undefined),
      }
    },

    async network() {
      const one = pick()
      const path = `/sandboxes/${one.sandbox.sandboxID}`
      const rules = { allowOut: [`${randomUUID()}.example`], denyOut: ['0.0.0.0/0'] }
      return {
        request: () => cloud.platform('PUT', `${path}/network`, rules),
        status: 204,
        enter: () => void (one.hasNames = true),
        async check() {
          const { allowOut, denyOut } = Object((await cloud.platform('GET', path)).json).network
          assert.deepEqual({ allowOut, denyOut }, rules)
        },
      }
    },

    async kill() {
      const { sandbox } = pick()
      const path = `/sandboxes/${sandbox.sandboxID}`
      return {
        request: () => cloud.platform('DELETE', path),
        status: 204,
        enter: () => gone(sandbox),
        check: async () => assert.equal((await post(`${path}/connect`, { timeout })).status, 404),
      }
    },
  } satisfies Record<string, Prepare>

  function pick(): AcknowledgedSandbox {
    return [...sandboxes.values()][random(sandboxes.size)] ?? assert.fail('no sandbox runs')
  }

  function gone({ sandboxID }: HandSandbox): void {
    sandboxes.delete(sandboxID)
    account.killed.add(sandboxID)
  }

  async function resumed(one: AcknowledgedSandbox): Promise<void> {
    const { sandboxID } = one.sandbox
    const reply = await post(`/sandboxes/${sandboxID}/connect`, { timeout })
    assert.equal(reply.status, 201, reply.text)
    sandboxes.set(sandboxID, one)
    await checkCounter(cloud, one)
  }

  /** Checks that a copy has the memory of its original, then kills it. */
  async function checkCopy(sandbox: HandSandbox, count: number): Promise<void> {
    await checkCounter(cloud, { sandbox, count, hasNames: false })
    await kill(sandbox)
  }

  async function kill(sandbox: HandSandbox): Promise<void> {
    const { status, text } = await cloud.platform('DELETE', `/sandboxes/${sandbox.sandboxID}`)
    assert.equal(status, 204, text)
    gone(sandbox)
  }

  async function requestBuild() {
    const mark = randomUUID()
    const name = `t-${mark}`
    const made = await post('/v3/templates', { name, cpuCount: 1, memoryMB: 256 })
    assert.equal(made.status, 202, made.text)
    const { templateID, buildID } = Object(made.json)
    const path = `templates/${templateID}/builds/${buildID}`
    const steps = [{ type: 'RUN', args: [`echo ${mark} > /mark`, 'root'] }]
    return {
      name,
      mark,
      templateId: String(templateID),
      async start() {
        const started = await post(`/v2/${path}`, { fromTemplate: 'base', steps })
        assert.equal(started.status, 202, started.text)
        return waitFor(
          'the build to be ready',
          async () => {
            const reply = await cloud.platform('GET', `/${path}/status`)
            const { status } = Object(reply.json)
            assert.notEqual(status, 'error', reply.text)
            return status === 'ready' && reply
          },
          { timeoutMs: 240_000, intervalMs: 20 },
        )
      },
    }
  }

  async function buildOne(): Promise<string> {
    const { name, mark, templateId, start } = await requestBuild()
    await start()
    templates.set(name, { templateId, mark })
    return name
  }

  async function checkTemplate(name: string): Promise<void> {
    const made = await post('/v2/sandboxes', { templateID: name, timeout })
    assert.equal(made.status, 201, made.text)
    const sandbox = sandboxIn(made)
    assert.equal(await print(cloud, sandbox, 'cat /mark'), `${templates.get(name)?.mark}\n`)
    await kill(sandbox)
  }

  async function checkNoTemplate(id: string): Promise<void> {
    const { status, text } = await post('/v2/sandboxes', { templateID: id, timeout })
    assert.equal(status, 404, text)
  }

  async function checkSecret(name: string, version: number | undefined): Promise<void> {
    const { json } = await cloud.platform('GET', `/secrets/${name}`)
    assert.equal(Object(json).currentVersion, version)
  }

  async function someSecret(): Promise<readonly [string, number]> {
    const [known] = secrets
    if (known) return known
    const name = `s-${randomUUID()}`
    assert.equal((await post('/secrets', { name, value: 'the value' })).status, 201)
    secrets.set(name, 1)
    return [name, 1]
  }

  return works
}

/** Sandbox timeout in seconds, longer than any test run. */
const timeout = 3600

function sandboxIn({ json }: Reply): HandSandbox {
  return Object(json)
}

function snapshotIn({ json }: Reply): string {
  return Object(json).snapshotID
}
