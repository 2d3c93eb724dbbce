/**
 * Agent that tests start in a network namespace. It reads one call per line from stdin, `{ id, method, args }`, and
 * answers each with a line, `{ id, result }` or `{ id, error }`.
 */
import { createInterface } from 'node:readline'
import { NetworkRules } from '@atoll/contracts/network/rules'
import { run, tryRun } from '@atoll/kit/run'
import { z } from 'zod'
import { parseSubnet, toSlot } from '../../domain/network/slot.ts'
import { createEgress } from '../../net/egress.ts'
import { createFirewall } from '../../net/firewall.ts'
import { createTalker } from './talker.ts'

const Setting = z.object({
  subnet: z.string(),
  nameservers: z.array(z.string()).default([]),
  certificates: z.array(z.string()).default([]),
  installation: z.object({
    tag: z.string(),
    dataDir: z.string(),
    runDir: z.string(),
    cgroup: z.string(),
    nftTable: z.string(),
    linkPrefix: z.string(),
  }),
})
const Call = z.object({ id: z.number(), method: z.string(), args: z.array(z.unknown()) })

const {
  installation,
  subnet: cidr,
  nameservers,
  certificates,
} = Setting.parse(JSON.parse(process.argv[2] ?? ''))
const subnet = parseSubnet(cidr)
const report = (error: unknown) => void process.stderr.write(`${String(error)}\n`)
const egress = createEgress({
  ...installation,
  subnet: cidr,
  nameservers,
  certificates,
  onOpen: (ports) => firewall.redirectTo(ports),
  onError: report,
})
const firewall = createFirewall(installation, cidr, { run, tryRun }, egress, report)
const slot = (number: number) => toSlot(subnet, installation.linkPrefix, number)
const talker = createTalker()

type Method = (args: unknown) => Promise<unknown>

const methods: Readonly<Record<string, Method>> = {
  install: method(
    z.tuple([z.array(z.number()), z.array(z.tuple([z.number(), NetworkRules]))]),
    ([slots, rules]) => firewall.install(slots.map(slot), new Map(rules)),
  ),
  addSlot: method(z.tuple([z.number(), NetworkRules.nullable()]), ([number, rules]) =>
    firewall.addSlot(slot(number), rules ?? undefined),
  ),
  setRules: method(z.tuple([z.number(), NetworkRules.nullable()]), ([number, rules]) =>
    firewall.setRules(slot(number), rules ?? undefined),
  ),
  uninstall: () => firewall.uninstall(),
  removeSlot: method(z.tuple([z.number()]), ([number]) => firewall.removeSlot(slot(number))),
  connections: method(z.tuple([z.number()]), ([number]) => firewall.connections(slot(number))),
  lastDenied: method(
    z.tuple([z.number()]),
    async ([number]) => (await firewall.deniedSince(1))(slot(number)) ?? null,
  ),
  listen: method(z.tuple([z.number()]), ([port]) => talker.listen(port)),
  datagrams: async () => talker.datagrams,
  dial: method(z.tuple([z.string(), z.number()]), (target) => talker.dial(...target)),
  say: method(z.tuple([z.string(), z.string()]), async (words) => talker.say(...words)),
  heard: method(z.tuple([z.string()]), async ([name]) => talker.heard(name)),
  ended: method(z.tuple([z.string()]), async ([name]) => talker.ended(name)),
  send: method(z.tuple([z.string(), z.number(), z.string()]), (what) => talker.send(...what)),
}

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method: name, args } = Call.parse(JSON.parse(line))
  const reply = await Promise.try(() => methods[name]?.(args)).then(
    (result) => ({ id, result: result ?? null }),
    (error: unknown) => ({ id, error: error instanceof Error ? error.message : 'unknown' }),
  )
  process.stdout.write(`${JSON.stringify(reply)}\n`)
}

function method<Args>(schema: z.ZodType<Args>, act: (args: Args) => Promise<unknown>): Method {
  return (args) => act(schema.parse(args))
}
