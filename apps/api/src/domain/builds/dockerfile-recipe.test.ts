import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseDockerfile } from '@atoll/kit/dockerfile/parse'
import { toRecipe } from './dockerfile-recipe.ts'
import type { DockerfileOrigin } from './dockerfile-recipe.ts'
import type { Recipe } from './recipe.ts'

function recipeOf(text: string, origin: Partial<DockerfileOrigin> = {}): Recipe {
  const dockerfile = parseDockerfile(text, { hasFiles: false })
  const parent = { fromImage: dockerfile.from }
  return toRecipe(dockerfile, { parent, note: undefined, keepsUserAndDirectory: false, ...origin })
}

function stepsOf(text: string): string[][] {
  return recipeOf(text).steps.map(({ type, args }) => [type, ...args])
}

test('steps run as root, and sandboxes get the default user and directory', () => {
  assert.deepEqual(stepsOf('FROM debian\nRUN a'), [
    ['USER', 'root'],
    ['WORKDIR', '/'],
    ['RUN', 'a'],
    ['USER', 'user'],
    ['WORKDIR', '/home/user'],
  ])
})

test('a user and a directory of the Dockerfile are not changed at the end', () => {
  assert.deepEqual(stepsOf('FROM debian\nUSER app\nWORKDIR /srv'), [
    ['USER', 'root'],
    ['WORKDIR', '/'],
    ['USER', 'app'],
    ['WORKDIR', '/srv'],
  ])
})

test('user and directory of the parent are kept where the origin says so', () => {
  const parent = { fromTemplate: 'id:build' }
  const origin = { parent, note: 'from mine', keepsUserAndDirectory: true }
  assert.deepEqual(recipeOf('FROM mine\nRUN a\nUSER b', origin), {
    fromTemplate: 'id:build',
    originNote: 'from mine',
    steps: [
      { type: 'RUN', args: ['a'], force: false },
      { type: 'USER', args: ['b'], force: false },
    ],
    force: false,
  })
})

test('a start command gets the ready command of the SDK', () => {
  const { startCommand, readyCommand } = recipeOf('FROM debian\nCMD ["a", "b c"]')
  assert.deepEqual([startCommand, readyCommand], ["a 'b c'", 'sleep 20'])
})
