import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { toOpenApi } from '@atoll/contracts/openapi'
import { defineOperation } from '@atoll/contracts/operation'
import { operations } from '@atoll/contracts/operations'
import { z } from 'zod'
import { renderReference } from './reference-page.ts'

test('the page has a section for every operation, and every link has a target on it', () => {
  const { body } = renderReference(toOpenApi(operations, '0.1.0'))
  const text = body.replaceAll(/<\/?code>/g, '')
  for (const { id, path, summary } of operations) {
    assert.ok(body.includes(`<section id="${id}">`), id)
    assert.ok(body.includes(path.replaceAll('&', '&#38;')), path)
    assert.ok(text.includes(summary.replaceAll("'", '&#39;').replaceAll('`', '')), summary)
  }
  const links = [...body.matchAll(/href="#([^"]+)"/g)].map(([, target]) => target)
  assert.ok(links.length > operations.length)
  for (const target of links) assert.ok(body.includes(`id="${target}"`), `#${target}`)
})

test('the page loads nothing, and its policy allows its style alone', () => {
  const { body, headers } = renderReference(toOpenApi(operations, '0.1.0'))
  assert.doesNotMatch(body, /<script|\ssrc=|@import|https?:|\son\w+=|style="/)
  const [, style = ''] = /<style>([^]*?)<\/style>/.exec(body) ?? []
  const hash = createHash('sha256').update(style).digest('base64')
  const policy = headers['Content-Security-Policy'] ?? ''
  assert.match(policy, /^default-src 'none'/)
  assert.ok(policy.includes(`'sha256-${hash}'`))
})

test('texts of contracts are shown, not run', () => {
  const hostile = '</style><script>alert("1")</script>'
  const operation = defineOperation({
    id: 'x.y',
    summary: hostile,
    method: 'GET',
    path: '/x',
    auth: 'none',
    query: z.object({ '"><img': z.enum([hostile]).describe(hostile) }),
    replies: { 200: { description: hostile, body: z.object({ [hostile]: z.string() }) } },
    errors: [],
  })
  const { body } = renderReference(toOpenApi([operation], hostile))
  assert.doesNotMatch(body, /<script|<img/)
})
