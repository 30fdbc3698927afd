import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { GIT_ENVIRONMENT } from './git-cli.ts';

/** The address in test keys, which is the one that Sluice writes into commits. */
const ADDRESS = 'sluice@localhost';

/** Runs git's own verification of a commit or tag. Throws with the words of git if the signature is missing or wrong. */
export type Verify = (gitDir: string, type: 'commit' | 'tag', object: string) => void;

/** True if a program is installed; tests that need one which is not are skipped, with that reason. */
export function isInstalled(program: 'gpg' | 'ssh-keygen'): boolean {
  try {
    execFileSync('sh', ['-c', `command -v ${program}`], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

/** A key pair by ssh-keygen, and verification against its public half. */
export function sshKey(
  folder: string,
  type: string,
  moreArguments: readonly string[] = [],
): { readonly privateKey: string; readonly verify: Verify } {
  const file = join(folder, `key-${type}${moreArguments.join('')}`);
  const passphrase = moreArguments.includes('-N') ? [] : ['-N', ''];
  execFileSync('ssh-keygen', ['-q', '-t', type, ...passphrase, ...moreArguments, '-C', 'test', '-f', file]);
  const allowed = `${file}.allowed`;
  const publicKey = readFileSync(`${file}.pub`, 'utf8');
  writeFileSync(allowed, `${ADDRESS} ${publicKey}`);
  return {
    privateKey: readFileSync(file, 'utf8'),
    verify: (gitDir, kind, object) => verifyWith(gitDir, kind, object, {}, [`gpg.ssh.allowedSignersFile=${allowed}`]),
  };
}

/** A key pair by gpg with a passphrase, in a folder of its own. `end` stops the agent that gpg has started. */
export function gpgKey(
  folder: string,
  passphrase: string,
): {
  readonly armored: string;
  readonly publicKey: string;
  readonly keyId: string;
  readonly verify: Verify;
  end(): void;
} {
  const home = gpgHome(folder);
  const secret = ['--batch', '--pinentry-mode', 'loopback', '--passphrase', passphrase];
  gpg(home, [...secret, '--quick-gen-key', `Sluice <${ADDRESS}>`, 'ed25519', 'sign', '1d']);
  const armored = gpg(home, [...secret, '--armor', '--export-secret-keys']);
  const end = () => void execFileSync('gpgconf', ['--kill', 'all'], { env: { ...GIT_ENVIRONMENT, GNUPGHOME: home } });
  const publicKey = gpg(home, ['--batch', '--armor', '--export']);
  const [, , , , keyId = ''] =
    gpg(home, ['--batch', '--with-colons', '--list-keys'])
      .match(/^pub:.*$/m)?.[0]
      .split(':') ?? [];
  return { armored, publicKey, keyId, verify: gpgVerify(home), end };
}

/** Verification against a public key that was made elsewhere. */
export function gpgVerifier(folder: string, publicKey: string): Verify {
  const home = gpgHome(folder);
  // Public keys need no agent, which would go on running.
  writeFileSync(join(home, 'gpg.conf'), 'no-autostart\n');
  gpg(home, ['--batch', '--import'], publicKey);
  return gpgVerify(home);
}

function gpgHome(folder: string): string {
  const home = join(folder, 'gnupg');
  mkdirSync(home, { mode: 0o700 });
  return home;
}

function gpgVerify(home: string): Verify {
  return (gitDir, kind, object) => verifyWith(gitDir, kind, object, { GNUPGHOME: home }, []);
}

function gpg(home: string, commandArguments: readonly string[], input = ''): string {
  const env = { ...GIT_ENVIRONMENT, GNUPGHOME: home };
  return execFileSync('gpg', commandArguments, { env, input, stdio: ['pipe', 'pipe', 'pipe'] }).toString();
}

function verifyWith(
  gitDir: string,
  kind: 'commit' | 'tag',
  object: string,
  environment: Readonly<Record<string, string>>,
  settings: readonly string[],
): void {
  const chosen = settings.flatMap((setting) => ['-c', setting]);
  execFileSync('git', [...chosen, `--git-dir=${gitDir}`, `verify-${kind}`, object], {
    env: { ...GIT_ENVIRONMENT, ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
}
