import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  EgressProxySchema,
  HeaderRuleSchema,
  IngressSchema,
  NetworkRulesSchema,
} from '../../gen/atoll/node/v1/node_pb.js'
import { DomainHeaders, EgressProxy, Ingress, NetworkRules } from './rules.ts'

/** The node protocol declares the same values in protobuf; a field of one side only would be lost on the way. */
const pairs = [
  { name: 'rules', schema: NetworkRules, message: NetworkRulesSchema },
  { name: 'a proxy', schema: EgressProxy, message: EgressProxySchema },
  { name: 'headers of a domain', schema: DomainHeaders, message: HeaderRuleSchema },
  { name: 'ingress', schema: Ingress, message: IngressSchema },
]

for (const { name, schema, message } of pairs) {
  test(`the node protocol has the same fields for ${name}`, () => {
    const declared = Object.keys(schema.unwrap().shape).map((field) =>
      field === 'transforms' ? 'headerRules' : field,
    )
    const sent = message.fields.map(({ localName }) => localName)
    assert.deepEqual(declared.toSorted(), sent.toSorted())
  })
}
