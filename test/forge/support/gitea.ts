import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { freePort } from '../../support/free-port.ts';
import type { GiteaProgram } from './gitea-program.ts';

const run = promisify(execFile);

const STARTS_WITHIN = 60_000;
/** Of the requests that its own hooks make. */
const INTERNAL_TOKEN = 'the-word-of-the-hooks';
const QUEUES_END_WITHIN_S = 90;
const NO_COMMIT = '0'.repeat(40);

/** The address of a running server. */
export interface GiteaAddress {
  /** `http://127.0.0.1:<port>`. */
  readonly url: string;
  /** Folder of all its files. */
  readonly folder: string;
}

/** The owner of all repositories, who administers the server. */
export const OWNER = { username: 'owner', password: 'the-word-of-the-owner' } as const;

/** A Gitea on loopback with SQLite, in a folder of its own. Returns its address and a function that stops it. */
export async function startGitea(program: GiteaProgram): Promise<GiteaAddress & { close(): Promise<void> }> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-gitea-'));
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const config = join(folder, 'app.ini');
  await writeFile(config, settings(folder, port, program));
  const env = { PATH: process.env.PATH, HOME: folder, GITEA_WORK_DIR: folder };
  const gitea = (...args: string[]) => run(program.path, ['--config', config, ...args], { env, cwd: folder });
  let child: ChildProcess | undefined;
  const close = async () => {
    if (child !== undefined) await end(child);
    await rm(folder, { recursive: true, force: true });
  };
  try {
    await gitea('migrate');
    const { username, password } = OWNER;
    const more = ['--email', `${username}@example.com`, '--admin', '--must-change-password=false'];
    await gitea('admin', 'user', 'create', '--username', username, '--password', password, ...more);
    child = spawn(program.path, ['--config', config, 'web'], { env, cwd: folder, stdio: 'ignore' });
    await answers(`${url}/api/v1/version`, child);
  } catch (error) {
    const log = await readFile(join(folder, 'log', 'gitea.log'), 'utf8').catch(() => 'no log');
    await close();
    throw new Error(`gitea does not start:\n${log.slice(-4000)}`, { cause: error });
  }
  return { url, folder, close };
}

export interface Login {
  readonly username: string;
  readonly password: string;
}

/** The operations of the tests on a running Gitea, as its owner. */
export class Gitea {
  readonly url: string;
  readonly #folder: string;

  constructor({ url, folder }: GiteaAddress) {
    this.url = url;
    this.#folder = folder;
  }

  /** Calls its API and returns the JSON of the response, if there is any. Throws with its message unless it succeeds. */
  async api(
    method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE',
    path: string,
    body?: unknown,
    { username, password }: Login = OWNER,
  ): Promise<unknown> {
    const response = await fetch(`${this.url}/api/v1${path}`, {
      method,
      headers: {
        authorization: `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`,
        'content-type': 'application/json',
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return text === '' ? undefined : JSON.parse(text);
  }

  /** Resolves when it has done what it had queued, such as closing the pull requests of a branch that a push removed. */
  async finishQueued(): Promise<void> {
    await this.#internal('manager/flush-queues', { Timeout: QUEUES_END_WITHIN_S * 1e9, NonBlocking: false });
  }

  /**
   * Has it do what it queues for pushes of a user that remove a branch and create it again, which is there already: under load it gets to the
   * removal when the next pull request of the branch is open.
   */
  async handleRemovalLate(repository: string, branch: string, username: string): Promise<void> {
    const ref = `refs/heads/${branch}`;
    const { id } = (await this.api('GET', `/users/${username}`)) as { id: number };
    const { stdout } = await this.#git(repository, 'rev-parse', ref);
    const head = stdout.trim();
    for (const [before, after] of [
      [head, NO_COMMIT],
      [NO_COMMIT, head],
    ])
      await this.#internal(`hook/post-receive/${OWNER.username}/${repository}`, {
        ...{ OldCommitIDs: [before], NewCommitIDs: [after], RefFullNames: [ref] },
        ...{ UserID: id, UserName: username },
      });
    await this.finishQueued();
  }

  /** A request as its own hooks and commands make them. */
  async #internal(path: string, body: unknown): Promise<void> {
    const response = await fetch(`${this.url}/api/internal/${path}`, {
      method: 'POST',
      headers: { 'x-gitea-internal-auth': `Bearer ${INTERNAL_TOKEN}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${path}: ${response.status} ${text}`);
  }

  /** Creates a private repository with a first commit on `main`. Returns its address for git. */
  async createRepository(name: string): Promise<string> {
    await this.api('POST', '/user/repos', { name, private: true, auto_init: true, default_branch: 'main' });
    return this.addressOf(name);
  }

  /** The address of a repository for git, whether there is one or not. */
  addressOf(name: string): string {
    return `${this.url}/${OWNER.username}/${name}.git`;
  }

  /** Creates a user who administers nothing. Pages with the same users share them. */
  async createUser(username: string): Promise<Login> {
    const password = `the-word-of-${username}`;
    const email = `${username}@example.com`;
    const user = { username, password, email, must_change_password: false };
    await this.api('POST', '/admin/users', user).catch((error: unknown) => {
      if (!String(error).includes('user already exists')) throw error;
    });
    return { username, password };
  }

  /** Lets a user push to a repository. */
  async addWriter(username: string, repository: string): Promise<void> {
    const path = `/repos/${OWNER.username}/${repository}/collaborators/${username}`;
    await this.api('PUT', path, { permission: 'write' });
  }

  /** Creates a user who may push to a repository and administers nothing. */
  async createWriter(username: string, repository: string): Promise<void> {
    await this.createUser(username);
    await this.addWriter(username, repository);
  }

  /** Creates a token of a user, for repositories only. */
  async createToken(username: string, name: string, scopes: readonly string[] = ['write:repository']): Promise<string> {
    const path = `/users/${username}/tokens`;
    return ((await this.api('POST', path, { name, scopes })) as { sha1: string }).sha1;
  }

  /** Adds a hook to those of Gitea. */
  async addHook(repository: string, kind: 'pre-receive' | 'post-receive', script: string): Promise<void> {
    const file = join(this.pathOf(repository), 'hooks', `${kind}.d`, 'test');
    await writeFile(file, script);
    await chmod(file, 0o755);
  }

  /** Sets an option of git for one repository, as the operator of the host may. */
  async configure(repository: string, option: string, value: string): Promise<void> {
    await run('git', ['config', '--file', join(this.pathOf(repository), 'config'), option, value]);
  }

  /** Folder of the bare repository. */
  pathOf(repository: string): string {
    return join(this.#folder, 'repositories', OWNER.username, `${repository}.git`);
  }

  /** The names and values of all refs. */
  async refs(repository: string): Promise<string> {
    return (await this.#git(repository, 'for-each-ref', '--format=%(refname) %(objectname)')).stdout;
  }

  #git(repository: string, ...args: string[]) {
    return run('git', ['-c', 'safe.directory=*', '-C', this.pathOf(repository), ...args]);
  }
}

function settings(folder: string, port: number, { assets }: GiteaProgram): string {
  return `
RUN_MODE = prod
WORK_PATH = ${folder}
I_AM_BEING_UNSAFE_RUNNING_AS_ROOT = true
[server]
HTTP_ADDR = 127.0.0.1
HTTP_PORT = ${port}
ROOT_URL = http://127.0.0.1:${port}/
APP_DATA_PATH = ${join(folder, 'data')}
STATIC_ROOT_PATH = ${assets}
OFFLINE_MODE = true
DISABLE_SSH = true
LFS_START_SERVER = false
[repository]
ROOT = ${join(folder, 'repositories')}
[database]
DB_TYPE = sqlite3
PATH = ${join(folder, 'gitea.db')}
[security]
INSTALL_LOCK = true
INTERNAL_TOKEN = ${INTERNAL_TOKEN}
PASSWORD_HASH_ALGO = pbkdf2$1000$50
[service]
DISABLE_REGISTRATION = true
[webhook]
ALLOWED_HOST_LIST = loopback
[log]
ROOT_PATH = ${join(folder, 'log')}
MODE = file
LEVEL = Info
logger.access.MODE = access
[log.access]
MODE = file
FILE_NAME = access.log
[actions]
ENABLED = false
[packages]
ENABLED = false
[indexer]
ISSUE_INDEXER_TYPE = db
`;
}

async function answers(url: string, child: ChildProcess): Promise<void> {
  const deadline = Date.now() + STARTS_WITHIN;
  for (;;) {
    if (child.exitCode !== null || child.signalCode !== null) throw new Error('it has ended');
    const response = await fetch(url).catch(() => undefined);
    if (response?.ok === true) return;
    if (Date.now() > deadline) throw new Error(`it does not respond at ${url}`);
    await delay(100);
  }
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGTERM');
  const cancel = setTimeout(() => child.kill('SIGKILL'), 10_000);
  await ended;
  clearTimeout(cancel);
}
