import assert from 'node:assert/strict'
import { test } from 'node:test'
import { chooseHome } from './home-node.ts'

const nodes = ['n1', 'n2', 'n3', 'n4']
const teams = Array.from({ length: 400 }, (_, index) => `team-${index}`)

test('teams are spread over the nodes, in any order of them', () => {
  const counts = new Map<string | undefined, number>()
  for (const team of teams) {
    const home = chooseHome(team, nodes)
    assert.equal(chooseHome(team, nodes.toReversed()), home)
    counts.set(home, (counts.get(home) ?? 0) + 1)
  }
  for (const node of nodes) assert.ok((counts.get(node) ?? 0) > 60, `${node}: ${counts.get(node)}`)
  assert.equal(chooseHome('team-1', []), undefined)
})

test('without a node, only its own teams move', () => {
  for (const team of teams) {
    const home = chooseHome(team, nodes)
    if (home !== 'n4') assert.equal(chooseHome(team, nodes.slice(0, 3)), home)
  }
})
