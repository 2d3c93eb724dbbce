/** `sandbox.git` of the published SDK, against a git daemon inside the same sandbox, on both runtimes. */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { waitFor } from '@atoll/kit/wait'
import { CommandExitError, GitAuthError, GitUpstreamError, Sandbox } from 'e2b'
import { install } from '../installation.ts'
import type { Installation } from '../installation.ts'
import { runtimes } from '../shell.ts'

const server = 'git://127.0.0.1/project.git'
const polling = { intervalMs: 100 }
const author = { authorName: 'Ann', authorEmail: 'ann@example.org' }

for (const runtime of runtimes) {
  suite(`git on ${runtime}`, () => {
    let installation: Installation
    let sandbox: Sandbox

    before(async () => {
      installation = await install({ ATOLL_RUNTIME: runtime })
      sandbox = await Sandbox.create({ ...installation.connection, timeoutMs: 600_000 })
      await sandbox.git.init('served/project.git', { bare: true, initialBranch: 'main' })
      const options = '--listen=127.0.0.1 --reuseaddr --export-all --enable=receive-pack'
      await sandbox.commands.run(`git daemon ${options} --base-path=/home/user/served`, {
        background: true,
        timeoutMs: 0,
      })
      await waitFor(
        'the git daemon',
        () => listRemote('HEAD').then(() => true, falseIfRefused),
        polling,
      )
    })
    after(() => installation[Symbol.asyncDispose]())

    const shell = async (script: string) => (await sandbox.commands.run(script)).stdout.trim()
    const listRemote = (ref: string) => shell(`git ls-remote ${server} ${ref}`)

    test('a new repository gets its first commit and is pushed', async () => {
      const { git, files } = sandbox
      await git.init('first', { initialBranch: 'main' })
      await git.remoteAdd('first', 'origin', 'git://127.0.0.1/wrong.git')
      await git.remoteAdd('first', 'origin', server, { overwrite: true, fetch: true })
      assert.equal(await git.remoteGet('first', 'origin'), server)
      assert.equal(await git.remoteGet('first', 'other'), undefined)
      await files.write('first/read me.txt', 'one\n')
      await files.write('first/src/main.py', 'print(1)\n')

      const status = await git.status('first')
      assert.deepEqual(
        [status.currentBranch, status.isClean, status.hasUntracked, status.untrackedCount],
        ['main', false, true, 2],
      )
      await git.add('first', { files: ['read me.txt'] })
      const [staged, untracked] = (await git.status('first')).fileStatus
      assert.deepEqual(
        [staged?.status, staged?.staged, untracked?.status, untracked?.staged],
        ['added', true, 'untracked', false],
      )
      await git.add('first')
      await git.commit('first', "the 'first' commit", author)
      const log = await shell('git -C first log --format="%an <%ae> %s"')
      assert.equal(log, "Ann <ann@example.org> the 'first' commit")

      await assert.rejects(git.pull('first'), GitUpstreamError)
      await git.push('first', { remote: 'origin', branch: 'main' })
      const { isClean, upstream, ahead, behind } = await git.status('first')
      assert.deepEqual([isClean, upstream, ahead, behind], [true, 'origin/main', 0, 0])
      const [pushedCommit] = (await listRemote('refs/heads/main')).split('\t')
      assert.equal(pushedCommit, await shell('git -C first rev-parse HEAD'))
    })

    test('a clone pulls the commits of another clone, and reports how far it is ahead', async () => {
      const { git, files } = sandbox
      await git.clone(server, { path: 'second' })
      assert.equal(await files.read('second/src/main.py'), 'print(1)\n')
      await files.write('first/src/main.py', 'print(2)\n')
      await git.add('first', { all: true })
      await git.commit('first', 'two', author)
      assert.equal((await git.status('first')).ahead, 1)
      await git.push('first')

      await shell('git -C second fetch')
      assert.equal((await git.status('second')).behind, 1)
      await git.pull('second')
      assert.equal(await files.read('second/src/main.py'), 'print(2)\n')
      await git.clone(server, { path: 'shallow', depth: 1, branch: 'main' })
      assert.equal(await shell('git -C shallow rev-list --count HEAD'), '1')
    })

    test('branches are created, listed, switched, pushed and deleted', async () => {
      const { git } = sandbox
      await git.createBranch('first', 'topic/a')
      await git.commit('first', 'empty', { ...author, allowEmpty: true })
      await git.push('first', { remote: 'origin', branch: 'topic/a' })
      assert.match(await listRemote('refs/heads/topic/a'), /^[0-9a-f]{40}\t/)
      assert.deepEqual(await git.branches('first'), {
        branches: ['main', 'topic/a'],
        currentBranch: 'topic/a',
      })
      await git.checkoutBranch('first', 'main')
      await git.createBranch('first', 'unmerged')
      await git.commit('first', 'lost', { ...author, allowEmpty: true })
      await git.checkoutBranch('first', 'main')
      await assert.rejects(git.deleteBranch('first', 'unmerged'), CommandExitError)
      await git.deleteBranch('first', 'unmerged', { force: true })
      assert.deepEqual((await git.branches('first')).branches, ['main', 'topic/a'])
    })

    test('restore and reset undo changes', async () => {
      const { git, files } = sandbox
      await files.write('first/src/main.py', 'mistake\n')
      await git.add('first')
      await git.restore('first', { paths: ['src/main.py'], staged: true })
      assert.deepEqual(
        (await git.status('first')).fileStatus.map(({ name, status, staged }) => [
          name,
          status,
          staged,
        ]),
        [['src/main.py', 'modified', false]],
      )
      await git.restore('first', { paths: ['.'] })
      assert.equal(await files.read('first/src/main.py'), 'print(2)\n')
      await git.reset('first', { mode: 'hard', target: 'HEAD~1' })
      assert.equal(await files.read('first/src/main.py'), 'print(1)\n')
    })

    test('settings apply to a repository, to a user or to the whole system', async () => {
      const { git } = sandbox
      await git.configureUser('Bob B', 'bob@example.org')
      assert.equal(await git.getConfig('user.name'), 'Bob B')
      assert.equal(await git.getConfig('user.name', { user: 'root' }), undefined)
      const local = { scope: 'local', path: 'first' } as const
      await git.setConfig('pull.rebase', 'true', local)
      assert.equal(await git.getConfig('pull.rebase', local), 'true')
      assert.equal(await git.getConfig('pull.rebase'), undefined)
      await git.setConfig('color.ui', 'never', { scope: 'system', user: 'root' })
      assert.equal(await git.getConfig('color.ui', { scope: 'system' }), 'never')
      await git.commit('first', 'by Bob', { allowEmpty: true })
      assert.equal(await shell('git -C first log -1 --format=%an'), 'Bob B')

      await git.dangerouslyAuthenticate({ username: 'u', password: 'p%&', host: 'git.example' })
      const fillCommand = 'printf "protocol=https\\nhost=git.example\\n\\n" | git credential fill'
      assert.match(await shell(fillCommand), /^password=p%&$/m)
    })

    test('a clone of an unknown repository fails with GitAuthError', async () => {
      const clone = sandbox.git.clone('git://127.0.0.1/nothing.git', { path: 'third' })
      await assert.rejects(clone, GitAuthError)
      assert.equal(await sandbox.files.exists('third'), false)
    })
  })
}

/** Returns false while the server does not listen yet. Rethrows every other error. */
function falseIfRefused(error: unknown): false {
  if (error instanceof CommandExitError && /refused/.test(error.stderr)) return false
  throw error
}
