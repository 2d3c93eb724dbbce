import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRecentAnswers } from './recent-answers.ts'

test('many visitors cost one request a second for each answer', async () => {
  let now = 0
  let requests = 0
  const recent = createRecentAnswers(() => now)
  const read = async () => {
    requests += 1
    return requests
  }
  const visitors = Array.from({ length: 100 }, () => recent.find('link sandbox', read))
  assert.deepEqual(new Set(await Promise.all(visitors)), new Set([1]))
  assert.equal(await recent.find('link logs', read), 2)
  now = 999
  assert.equal(await recent.find('link sandbox', read), 1)
  now = 1_000
  assert.equal(await recent.find('link sandbox', read), 3)
})

test('a failure is an answer too, and the next second tries again', async () => {
  let now = 0
  const recent = createRecentAnswers(() => now)
  const fail = () => Promise.reject(new Error('no'))
  await assert.rejects(recent.find('link', fail), /no/)
  await assert.rejects(
    recent.find('link', async () => 'yes'),
    /no/,
  )
  now = 1_000
  assert.equal(await recent.find('link', async () => 'yes'), 'yes')
})
