import type { Endpoint, HostRules } from '../network/host-rules.ts';

/** Addresses of a host that are tried. */
const MAX_ADDRESSES = 4;

/** The result of an attempt: its value or its error. */
export type PinResult<Result> = { readonly result: Result } | { readonly error: unknown };

/** True for the message of ssh about an address that does not answer: another address of the host may. */
export function reportsUnreachable(output: string): boolean {
  return /\bssh: connect to host /.test(output);
}

/**
 * Connects to a host over ssh by the addresses that were checked, one after the other while they are unreachable; by name if the
 * operator permits the host. `connect` gets arguments for ssh: with them it connects to one address, and expects the key of the host.
 * Throws Refused for a local host, before anything is connected to.
 */
export async function connectPinned<Result>(
  hosts: HostRules,
  endpoint: Endpoint,
  connect: (pin: readonly string[]) => Promise<Result>,
  isUnreachable: (outcome: PinResult<Result>) => boolean,
): Promise<Result> {
  const addresses = await hosts.addresses(endpoint);
  const pins = addresses?.slice(0, MAX_ADDRESSES).map(({ address }) => pinTo(endpoint, address)) ?? [[]];
  for (const pin of pins.slice(0, -1)) {
    try {
      const result = await connect(pin);
      if (!isUnreachable({ result })) return result;
    } catch (error) {
      if (!isUnreachable({ error })) throw error;
    }
  }
  return await connect(pins.at(-1) ?? []);
}

/** The host key is looked up by the name: known_hosts names a host with a port of its own in brackets. */
function pinTo({ host, port }: Endpoint, address: string): string[] {
  const alias = port === 22 ? host : `[${host}]:${port}`;
  return ['-o', `HostName=${address}`, '-o', `HostKeyAlias=${alias}`];
}
