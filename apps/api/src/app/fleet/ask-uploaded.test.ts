import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Fault } from '@atoll/kit/fault'
import type { Uploaded } from '../../domain/uploaded.ts'
import { createAskUploaded } from './ask-uploaded.ts'

const wanted: Uploaded = { contents: [], snapshotIds: ['s1', 's2'], nodeTemplateIds: [] }
const found: Uploaded = { ...wanted, snapshotIds: ['s1'] }
const older = { id: 'older', hasObjects: true, answer: async () => undefined }
const silent = { id: 'silent', hasObjects: undefined, answer: () => assert.fail('asked') }
const never = new AbortController().signal
const down = () => Promise.reject(new Fault('unavailable', 'objects_unavailable', 'It is down'))

/** Asks nodes in this order. Returns the answer, and which nodes were asked. */
async function askAll(
  nodes: readonly {
    readonly id: string
    /** Undefined: the node has not answered this api yet. */
    readonly hasObjects: boolean | undefined
    readonly answer: () => Promise<Uploaded | undefined>
  }[],
  times = 1,
) {
  const asked: string[] = []
  let rank = 0
  const members = nodes.map(({ id, hasObjects, answer }) => ({
    id: () => id,
    facts: () => (hasObjects === undefined ? undefined : { hasObjects }),
    sandboxes: {
      findStored: () => {
        asked.push(id)
        return answer()
      },
    },
  }))
  // @ts-expect-error -- the members have only what is asked here
  const ask = createAskUploaded({ members: () => members }, 'gone', () => (rank += 1))
  const answers = []
  for (let done = 0; done < times; done += 1) {
    answers.push(await ask(wanted, never).catch((error: unknown) => error))
  }
  return { asked, answers }
}

test('the forgotten node and nodes without an object store are not asked', async () => {
  const { asked, answers } = await askAll([
    { id: 'gone', hasObjects: true, answer: async () => found },
    { id: 'local', hasObjects: false, answer: async () => found },
  ])
  assert.deepEqual([asked, answers], [[], [undefined]])
})

test('nodes of an older release and nodes that fail are passed over, and a node that answers is asked again', async () => {
  const failing = { id: 'failing', hasObjects: true, answer: down }
  const able = { id: 'able', hasObjects: true, answer: async () => found }
  const { asked, answers } = await askAll([older, failing, silent, able], 2)
  assert.deepEqual(asked, ['older', 'failing', 'able', 'able'])
  assert.deepEqual(answers, [found, found])
})

test('without an answer, a failure counts more than an older release, and few nodes are asked', async () => {
  const failing = Array.from({ length: 9 }, (_, index) => ({
    ...{ id: `f${index}`, hasObjects: true, answer: down },
  }))
  const { asked, answers } = await askAll([older, ...failing])
  assert.equal(asked.length, 4)
  const [fault] = answers
  assert.ok(fault instanceof Fault)
  assert.deepEqual([fault.kind, /It is down/.test(fault.message)], ['unavailable', true])
  assert.deepEqual((await askAll([older, older])).answers, [undefined])
})

test('a node that has not answered since the start of the api may have an object store', async () => {
  for (const others of [[], [older]]) {
    const [fault] = (await askAll([silent, ...others])).answers
    assert.ok(fault instanceof Fault)
    assert.match(fault.message, /node silent has not answered/)
  }
})
