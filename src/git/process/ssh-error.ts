import { type ErrorCode, SluiceError } from '../../foundation/sluice-error.ts';
import { cleanText } from '../../foundation/text/clean-text.ts';
import { readSshAddress } from '../network/ssh-address.ts';

/** Messages of ssh about failed connections, when nothing was sent, and their meanings. The first match applies. */
const MEANINGS: readonly (readonly [RegExp, ErrorCode, (address: Place) => string])[] = [
  [
    /REMOTE HOST IDENTIFICATION HAS CHANGED|REVOKED HOST KEY/,
    'Refused',
    ({ host, scan }) =>
      `presents another host key than known_hosts lists: the connection may be intercepted, or ${host} has a new key; print it with "${scan}", compare its fingerprint with the one that the host publishes, and only then put it into known_hosts of the Secret`,
  ],
  [
    /host key is known for|Host key verification failed/,
    'Refused',
    ({ scan }) =>
      `is not in known_hosts: print its key with "${scan}", compare the fingerprint (ssh-keygen -lf -) with the one that the host publishes, and put the line into known_hosts of the Secret`,
  ],
  [
    /^Load key /m,
    'InvalidInput',
    () => 'cannot be reached, because ssh cannot read the private key: provide the complete key file',
  ],
  [
    /Permission denied \([^)]*publickey|Too many authentication failures/,
    'Refused',
    ({ user }) => `rejected the key for the user ${user}: add its public part there, or use another key`,
  ],
  [
    /cannot run ssh|ssh: (?:command )?not found/,
    'Unavailable',
    () => 'cannot be reached: the program ssh is not installed (Debian: apt-get install openssh-client)',
  ],
  [/Could not resolve hostname/, 'Unavailable', ({ host }) => `cannot be reached: the host ${host} does not exist`],
  [/^ssh: connect to host .*timed out|timed out during banner exchange/m, 'Timeout', () => 'does not answer'],
  [/^ssh: connect to host |^kex_exchange_identification: /m, 'Unavailable', () => 'cannot be reached'],
];

/** Lines with which ssh frames and explains a changed key to a user at a terminal, who has a file to edit. */
const ALARM =
  /^(?:@|IT IS POSSIBLE|Someone could|It is also|Please contact|Add correct|Offending| +remove with| +ssh-keygen).*\r?\n?/gm;

interface Place {
  readonly host: string;
  readonly user: string;
  /** The command that prints its host keys. */
  readonly scan: string;
}

/** Returns the error for a failed connection over ssh if the output of ssh reports one; nothing was sent then. */
export function sshError(url: string, stderr: string): SluiceError | undefined {
  // Output of a hook of the server is not from ssh: the push may have been applied.
  const own = stderr.replaceAll(/^remote: .*$/gm, '');
  const found = MEANINGS.find(([pattern]) => pattern.test(own));
  const address = readSshAddress(url);
  if (found === undefined || 'problem' in address) return undefined;
  const { host, port, user } = address;
  const [, code, meaning] = found;
  const scan = `ssh-keyscan ${port === 22 ? '' : `-p ${port} `}${host}`;
  // The files have other names each time, which would make each report of one problem look new.
  const output = cleanText(
    withoutAnswers(stderr)
      .replaceAll(ALARM, '')
      .replaceAll(/\/\S*\/sluice-[A-Za-z0-9]+\//g, ''),
  );
  return new SluiceError(code, `remote ${address.url} ${meaning({ host, user, scan })}. Output of ssh: ${output}`);
}

/** The output of ssh, without what a service sent that is not an ssh server, or that ended the connection. */
function withoutAnswers(stderr: string): string {
  return stderr
    .replaceAll(/(remote protocol version identification|banner line[^:\n]*):.*$/gim, '$1')
    .replaceAll(/^((?:Received disconnect|Disconnected) from \S+ port \d+):.*$/gm, '$1');
}
