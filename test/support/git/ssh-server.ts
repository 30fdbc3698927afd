import { execFileSync, spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { SshCredentials } from '../../../src/git/git-repository.ts';
import { freePort } from '../free-port.ts';

const SSHD = process.env.SLUICE_TEST_SSHD ?? '/usr/sbin/sshd';

/** Why no server for ssh can be started here; undefined if one can. */
export function sshServerProblem(): string | undefined {
  if (!existsSync(SSHD)) return `${SSHD} is missing: apt-get install openssh-server`;
  if (process.getuid?.() !== 0) return undefined;
  // As root, sshd requires the folder that its package's service creates at the start.
  mkdirSync('/run/sshd', { recursive: true });
  return undefined;
}

export interface SshServer {
  /** `ssh://<user>@127.0.0.1:<port>`; the path of a repository on this machine goes behind it. */
  readonly url: string;
  readonly port: number;
  readonly credentials: SshCredentials;
  /** The requested commands, with the version of Git's protocol before each. */
  commands(): string[];
  /** While true, new commands do not begin. */
  hang(on: boolean): void;
  close(): Promise<void>;
}

export interface SshServerOptions {
  /** A folder of the test. */
  readonly folder: string;
  /** Lets clients request version 2 of Git's protocol, as the big hosts do; a plain sshd does not. */
  readonly acceptsProtocol?: boolean;
}

/** A real sshd on loopback for the current user, who may run Git's commands and nothing else with its key. */
export async function startSshServer({ folder, acceptsProtocol = true }: SshServerOptions): Promise<SshServer> {
  const place = join(folder, 'sshd');
  mkdirSync(place);
  const port = await freePort();
  const hostKey = newKey(place, 'host');
  const userKey = newKey(place, 'user');
  const log = join(place, 'commands');
  const hanging = join(place, 'hang');
  writeFileSync(log, '');
  const command = join(place, 'command');
  writeFileSync(
    command,
    `#!/bin/sh
echo "\${GIT_PROTOCOL:-none} $SSH_ORIGINAL_COMMAND" >> ${log}
while test -e ${hanging}; do sleep 0.1; done
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
exec git-shell -c "$SSH_ORIGINAL_COMMAND"
`,
  );
  chmodSync(command, 0o755);
  writeFileSync(join(place, 'authorized_keys'), `restrict,command="${command}" ${userKey.publicKey}\n`);
  const config = join(place, 'sshd_config');
  const settings = [
    `ListenAddress 127.0.0.1:${port}`,
    `HostKey ${hostKey.file}`,
    `AuthorizedKeysFile ${place}/authorized_keys`,
    'PidFile none',
    'UsePAM no',
    'StrictModes no',
    'PasswordAuthentication no',
    'KbdInteractiveAuthentication no',
    'MaxStartups 100',
    ...(acceptsProtocol ? ['AcceptEnv GIT_PROTOCOL'] : []),
  ];
  writeFileSync(config, `${settings.join('\n')}\n`);
  const child = spawn(SSHD, ['-D', '-e', '-f', config], { stdio: ['ignore', 'ignore', 'pipe'] });
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()));
  let output = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  for (let tries = 0; !(await answers(port)); tries += 1) {
    if (child.exitCode !== null || tries > 500) throw new Error(`sshd did not start: ${output}`);
    await delay(20);
  }
  return {
    url: `ssh://${userInfo().username}@127.0.0.1:${port}`,
    port,
    credentials: { privateKey: userKey.privateKey, knownHosts: `[127.0.0.1]:${port} ${hostKey.publicKey}` },
    commands: () =>
      readFileSync(log, 'utf8')
        .split('\n')
        .filter((line) => line !== ''),
    hang: (on) => (on ? writeFileSync(hanging, '') : rmSync(hanging, { force: true })),
    close: async () => {
      child.kill();
      await ended;
    },
  };
}

/** A new pair of keys; the public one without its comment. */
export function newKey(folder: string, name: string, passphrase = '', ...more: readonly string[]) {
  const file = join(folder, name);
  execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', passphrase, '-C', '', '-f', file, ...more]);
  return {
    file,
    privateKey: readFileSync(file, 'utf8'),
    publicKey: readFileSync(`${file}.pub`, 'utf8').trim(),
  };
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    const settle = (result: boolean) => {
      socket.destroy();
      resolve(result);
    };
    socket.once('data', () => settle(true)).once('error', () => settle(false));
  });
}
