import { SluiceError } from '../../foundation/sluice-error.ts';
import type { SshCredentials } from '../git-repository.ts';
import { withPrivateFiles } from './private-files.ts';
import { checkPrivateKey } from './private-key.ts';

const MAX_KNOWN_HOSTS_CHARACTERS = 1024 * 1024;

/**
 * The whole configuration of ssh. Passed with -F, it replaces the configuration of user and system; what could still apply
 * (an agent, default keys, lists of hosts, a shared connection) is disabled by name.
 */
const SETTINGS = [
  'BatchMode yes',
  'LogLevel ERROR',
  'PreferredAuthentications publickey',
  'PubkeyAuthentication yes',
  'PasswordAuthentication no',
  'KbdInteractiveAuthentication no',
  'HostbasedAuthentication no',
  'IdentitiesOnly yes',
  'IdentityAgent none',
  'AddKeysToAgent no',
  'PKCS11Provider none',
  'GlobalKnownHostsFile /dev/null',
  'StrictHostKeyChecking yes',
  'UpdateHostKeys no',
  'VerifyHostKeyDNS no',
  'CheckHostIP no',
  'CanonicalizeHostname no',
  'ProxyCommand none',
  'ControlMaster no',
  'ControlPath none',
  'ForwardAgent no',
  'ForwardX11 no',
  'ClearAllForwardings yes',
  'PermitLocalCommand no',
  'Tunnel no',
  'RequestTTY no',
  'EscapeChar none',
  'SendEnv GIT_PROTOCOL',
  // Seconds. Ends the connection to a server that vanished; git's own limits do not cover what ssh waits for.
  'ConnectTimeout 30',
  'ConnectionAttempts 1',
  'ServerAliveInterval 15',
  'ServerAliveCountMax 4',
];

/**
 * Runs `use` with the arguments of `ssh` that make it use these credentials and nothing else; they contain no secret and no
 * character with a meaning in a shell. The files are removed afterwards. Throws InvalidInput for a key that cannot be used.
 */
export function withSshConfig<Result>(
  { privateKey, knownHosts }: SshCredentials,
  use: (sshArguments: readonly string[]) => Promise<Result>,
): Promise<Result> {
  const key = checkPrivateKey(privateKey);
  checkKnownHosts(knownHosts);
  return withPrivateFiles({ key, known_hosts: `${knownHosts.replaceAll('\r\n', '\n')}\n` }, (folder) => {
    const places = [`IdentityFile=${folder}/key`, `UserKnownHostsFile=${folder}/known_hosts`];
    const settings = [...SETTINGS.map((setting) => setting.replace(' ', '=')), ...places];
    return use(['-F', 'none', ...settings.flatMap((setting) => ['-o', setting])]);
  });
}

function checkKnownHosts(text: string): void {
  if (text.includes('\0') || text.length > MAX_KNOWN_HOSTS_CHARACTERS || !/^[^#\s]\S*[ \t]+\S/m.test(text))
    throw new SluiceError(
      'InvalidInput',
      'cannot use known_hosts: it has no line with a host and its key; print one with "ssh-keyscan <host>", and compare its fingerprint with the one that the host publishes',
    );
}
