/** Custom templates through the SDK: their build steps, and the sandboxes created from them. */
import assert from 'node:assert/strict'
import { mkdir, mkdtempDisposable, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { waitFor } from '@atoll/kit/wait'
import { BuildError, Sandbox, Template, waitForPort } from 'e2b'
import { takeMemoryBesideThreads } from '../attempts.ts'
import { namesOf } from '../host-state.ts'
import { install } from '../installation.ts'
import type { Installation } from '../installation.ts'
import { tracesOf } from '../traces.ts'

for (const runtime of ['gvisor', 'runc'] as const) {
  suite(`templates on ${runtime}`, () => {
    let installation: Installation
    let connection: Installation['connection']
    const size = { cpuCount: 1, memoryMB: 256 }

    before(async () => {
      installation = await install({ ATOLL_RUNTIME: runtime, ATOLL_BASE_MEMORY_MB: '256' })
      connection = installation.connection
    })
    after(() => installation[Symbol.asyncDispose]())

    async function build(template: Parameters<typeof Template.build>[0], name: string) {
      const lines: string[] = []
      const onBuildLogs = ({ message }: { message: string }) => void lines.push(message)
      const info = await Template.build(template, name, { ...connection, ...size, onBuildLogs })
      return { ...info, lines }
    }

    async function outputLines(sandbox: Sandbox, command: string): Promise<string[]> {
      const { stdout } = await sandbox.commands.run(command)
      return stdout.trim().split('\n')
    }

    test('steps create files, users and variables, and the start command runs in each sandbox', async () => {
      await using folder = await mkdtempDisposable(join(tmpdir(), 'atoll-context-'))
      const context = folder.path
      await mkdir(join(context, 'site/deep folder'), { recursive: true })
      await writeFile(join(context, 'site/index.html'), 'from the template')
      await writeFile(join(context, 'site/deep folder/-odd name'), 'odd')
      await symlink('index.html', join(context, 'site/link'))
      await writeFile(join(context, 'run.sh'), '#!/bin/sh\necho ran')
      const template = Template({ fileContextPath: context })
        .fromBaseImage()
        .setEnvs({ GREETING: 'hello', TWICE: '$GREETING $GREETING', PATH: '/opt/my tools:$PATH' })
        .runCmd('echo "$TWICE" > /root/said', { user: 'root' })
        .runCmd('echo first > replaced; echo gone > removed')
        .runCmd('echo second > replaced; rm removed; mkdir kept; rm -rf .profile')
        .setUser('worker')
        .setWorkdir('/srv/site')
        .copy('site', '.')
        .copy('run.sh', '/usr/local/bin/', { user: 'root', mode: 0o755 })
        .copy('run.sh', 'renamed', { user: 'user' })
        .runCmd('ls -1 > listing')
        .setStartCmd('python3 -m http.server 8123', waitForPort(8123))
      const { lines, templateId } = await build(template, 'site')
      assert.match(lines.join('\n'), /\[builder 2\/\d+\] RUN echo/)
      assert.ok(
        lines.some((line) => /^Build finished, took [\d.]+s$/.test(line)),
        lines.join('\n'),
      )

      const sandbox = await Sandbox.create('site', connection)
      assert.deepEqual(
        await outputLines(
          sandbox,
          'whoami; pwd; echo $TWICE; echo ${PATH%%:*}; curl -s localhost:8123/index.html',
        ),
        ['worker', '/srv/site', 'hello hello', '/opt/my tools', 'from the template'],
      )
      assert.deepEqual(
        await outputLines(sandbox, "stat -c '%n %U %a %F' . * 'deep folder/-odd name' | sort"),
        [
          '. worker 755 directory',
          'deep folder worker 755 directory',
          'deep folder/-odd name worker 644 regular file',
          'index.html worker 644 regular file',
          'link worker 777 symbolic link',
          'listing worker 644 regular file',
          'renamed user 644 regular file',
        ],
      )
      const asUser = await sandbox.commands.run(
        'run.sh; cd; cat replaced; ls -A; sudo cat /root/said; stat -c "%U %a" $(which run.sh)',
        { user: 'user' },
      )
      assert.deepEqual(asUser.stdout.trim().split('\n'), [
        ...['ran', 'second', '.bash_logout', '.bashrc'],
        ...(asUser.stdout.includes('.sudo_as') ? ['.sudo_as_admin_successful'] : []),
        ...['kept', 'replaced', 'hello hello', 'root 755'],
      ])
      const { templateId: usedTemplateId } = await sandbox.getInfo()
      assert.equal(usedTemplateId, templateId)

      // Writes of one sandbox stay in that sandbox.
      await sandbox.files.write('/srv/site/index.html', 'changed')
      const otherSandbox = await Sandbox.create('site', {
        ...connection,
        envs: { GREETING: 'other' },
      })
      assert.equal(await otherSandbox.files.read('/srv/site/index.html'), 'from the template')
      assert.deepEqual(await outputLines(otherSandbox, 'echo $GREETING $TWICE'), [
        'other hello hello',
      ])
      await Promise.all([sandbox.kill(), otherSandbox.kill()])
    })

    test('a build continues from the cached steps of an earlier build', async () => {
      const steps = Template().fromBaseImage().runCmd('date +%s%N > when')
      await build(steps, 'first')
      const { lines } = await build(steps.runCmd('echo more > more'), 'second')
      assert.match(lines.join('\n'), /CACHED \[builder 1\/2\] RUN date/)
      assert.doesNotMatch(lines.join('\n'), /CACHED \[builder 2\/2\]/)
      assert.match(lines.join('\n'), /DONE \[builder 2\/2\] RUN echo more > more took [\d.]+s/)
      const readDate = async (name: string) => {
        const sandbox = await Sandbox.create(name, connection)
        const when = await sandbox.files.read('when')
        await sandbox.kill()
        return when
      }
      const when = await readDate('first')
      assert.equal(await readDate('second'), when)
      const uncached = Template().skipCache().fromBaseImage().runCmd('date +%s%N > when')
      await build(uncached, 'first')
      assert.notEqual(await readDate('first'), when)
      assert.equal(await readDate('second'), when)
    })

    test('a template can be built from a template of this installation', async () => {
      const parent = Template()
        .fromBaseImage()
        .setEnvs({ FROM_PARENT: 'yes' })
        .setWorkdir('/srv')
        .runCmd('sudo touch by-parent')
      await build(parent, 'parent')
      const child = Template()
        .fromTemplate('parent')
        .runCmd('sudo cp by-parent by-child; echo $FROM_PARENT; whoami; hostname')
        .runCmd('ls')
      const { lines } = await build(child, 'child:v1')
      const text = lines.join('\n')
      assert.match(text, /\[stdout\]: yes\n.*\[stdout\]: user\n/)
      // Under runc there is no memory to start from, and this installation has no warm pool.
      const source = runtime === 'gvisor' ? 'started from the memory of the parent' : 'booted'
      assert.match(text, new RegExp(`\\[builder 1/2\\] sandbox ${source}`))
      assert.match(text, /\[builder 2\/2\] sandbox booted/)
      assert.match(text, /\[builder 2\/2\] \[stdout\]: by-child\n/)
      const sandbox = await Sandbox.create('child:v1', connection)
      assert.deepEqual(await outputLines(sandbox, 'pwd; ls; echo $FROM_PARENT'), [
        ...['/srv', 'by-child', 'by-parent', 'yes'],
      ])
      await assert.rejects(Sandbox.create('child', connection), /404/)

      // A copy from a snapshot keeps the working directory and variables of the template.
      await sandbox.files.write('/home/user/note', 'kept')
      const { snapshotId } = await sandbox.createSnapshot()
      const copy = await Sandbox.create(snapshotId, connection)
      assert.equal(await copy.files.read('/home/user/note'), 'kept')
      assert.deepEqual(await outputLines(copy, 'pwd; echo $FROM_PARENT'), ['/srv', 'yes'])
      await Promise.all([sandbox.kill(), copy.kill()])
    })

    test('a failed step is named, and the template is not changed', async () => {
      await build(Template().fromBaseImage().runCmd('echo 1 > version'), 'careful')
      const failingTemplate = Template()
        .fromBaseImage()
        .runCmd('echo 2 > version')
        .runCmd('echo reason >&2; exit 7')
      const lines: string[] = []
      const failure = Template.build(failingTemplate, 'careful', {
        ...connection,
        ...size,
        onBuildLogs: ({ message }) => void lines.push(message),
      })
      await assert.rejects(failure, (error) => {
        assert.ok(error instanceof BuildError)
        assert.match(error.message, /exit status 7/)
        return true
      })
      assert.match(lines.join('\n'), /\[builder 2\/2\] \[stderr\]: reason/)
      const sandbox = await Sandbox.create('careful', connection)
      assert.equal(await sandbox.files.read('version'), '1\n')
      await sandbox.kill()
    })

    test('a step of an unknown user fails with the text that the published clients compare', async () => {
      const steps = Template().fromBaseImage().runCmd('whoami', { user: 'root123' })
      const text =
        "failed to run command 'whoami': command failed: unauthenticated: invalid username: 'root123'"
      await assert.rejects(build(steps, 'unknown-user'), (error: Error) =>
        error.message.includes(text),
      )
    })

    test('a step that takes too much memory fails', async () => {
      const template = Template().fromBaseImage().runCmd(takeMemoryBesideThreads)
      await assert.rejects(build(template, 'greedy'), BuildError)
      const { lines } = await build(Template().fromBaseImage().runCmd('echo well'), 'modest')
      assert.match(lines.join('\n'), /\[stdout\]: well/)
    })

    test('a build that a crash of the server ends leaves no resources, and can be repeated', async () => {
      const slowTemplate = Template().fromBaseImage().runCmd('echo begun; sleep 600')
      const info = await Template.buildInBackground(slowTemplate, 'slow', {
        ...connection,
        ...size,
      })
      const status = () => Template.getBuildStatus(info, connection)
      await waitFor('the step to begin', async () =>
        (await status()).logEntries.some(({ message }) => message.endsWith(': begun')),
      )
      await installation.crash()
      await installation.start()
      const { reason } = await waitFor('the build to be over', async () => {
        const buildStatus = await status()
        return buildStatus.status === 'error' && buildStatus
      })
      assert.match(reason?.message ?? '', /restarted/)
      const { lines } = await build(Template().fromBaseImage().runCmd('echo quick'), 'slow')
      assert.match(lines.join('\n'), /: quick/)
      const names = await namesOf(installation.dataDir)
      await waitFor('the host to have no resources of the build', async () => {
        const { folders, groups, loopDevices, disks, roots, strays } = await tracesOf(names)
        return [folders, groups, loopDevices, disks, roots, strays].flat().length === 0
      })
    })
  })
}
