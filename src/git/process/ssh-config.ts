import { SluiceError } from '../../foundation/sluice-error.ts';
import type { SshCredentials } from '../git-repository.ts';
import { withPrivateFiles } from './private-files.ts';
import { checkPrivateKey } from './private-key.ts';

const LONGEST_KNOWN_HOSTS = 1024 * 1024;

/**
 * All that ssh is told. Given with -F, it takes the place of the configuration of user and system; what could still come from elsewhere
 * (an agent, default keys, lists of hosts, a connection that stands already) is switched off by name.
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
  // Seconds. A server that is gone without a word ends the connection; git's own limits do not see what ssh waits for.
  'ConnectTimeout 30',
  'ConnectionAttempts 1',
  'ServerAliveInterval 15',
  'ServerAliveCountMax 4',
];

/**
 * Runs `use` with the arguments of `ssh` that make it use these credentials and nothing else; they hold no secret and no character
 * that means something to a shell. The files that they name are gone afterwards. Throws InvalidInput for a key that cannot be used.
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
  if (text.includes('\0') || text.length > LONGEST_KNOWN_HOSTS || !/^[^#\s]\S*[ \t]+\S/m.test(text))
    throw new SluiceError(
      'InvalidInput',
      'the known_hosts for ssh hold no line with a host and its key: print one with "ssh-keyscan <host>", and compare its fingerprint with the one that the host publishes',
    );
}
