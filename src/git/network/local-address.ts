import { BlockList, isIP } from 'node:net';
import { networkInterfaces } from 'node:os';

/**
 * Addresses that no public Git host has, after the IANA registries of special-purpose addresses (RFC 6890). Pairs of network and
 * prefix length.
 */
const LOCAL_IPV4: readonly (readonly [string, number])[] = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  // Metadata services of clouds are here.
  ['169.254.0.0', 16],
  // Public by its number, and reached only from inside Azure: its metadata and DNS.
  ['168.63.129.16', 32],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
];

const localIpv4 = new BlockList();
for (const [network, prefix] of LOCAL_IPV4) localIpv4.addSubnet(network, prefix, 'ipv4');

/**
 * True for an IP address, without brackets, that leads to this machine or to a network that is not public: loopback, private,
 * link-local, reserved. IPv6 addresses that carry an IPv4 address count as that one. True for other texts.
 */
export function isLocalAddress(address: string): boolean {
  const [plain = ''] = address.split('%', 1);
  const family = isIP(plain);
  if (family === 0) return true;
  return (family === 4 ? localIpv4.check(plain, 'ipv4') : isLocalIpv6(plain)) || isOwn(plain);
}

function isLocalIpv6(address: string): boolean {
  const groups = groupsOf(address);
  const [a = 0, b = 0] = groups;
  const isZero = (from: number, to: number) => groups.slice(from, to).every((group) => group === 0);
  const embedded = (at: number) => {
    const [high = 0, low = 0] = groups.slice(at, at + 2);
    return localIpv4.check([high >> 8, high & 255, low >> 8, low & 255].join('.'), 'ipv4');
  };
  // ::ffff:a.b.c.d, and 64:ff9b::a.b.c.d of gateways to IPv4 (RFC 6052).
  if (isZero(0, 5) && groups[5] === 0xffff) return embedded(6);
  if (a === 0x64 && b === 0xff9b && isZero(2, 6)) return embedded(6);
  // 6to4 (RFC 3056).
  if (a === 0x2002) return embedded(1);
  // Teredo hides an IPv4 address. All else that is public is in 2000::/3.
  return (a === 0x2001 && b === 0) || a < 0x2000 || a > 0x3fff;
}

/** The eight groups of an IPv6 address. */
function groupsOf(address: string): number[] {
  // The URL parser writes an IPv4 tail as two groups.
  const [head = '', tail] = new URL(`http://[${address}]`).hostname.slice(1, -1).split('::');
  const [before, after] = [head, tail ?? ''].map((half) =>
    half === '' ? [] : half.split(':').map((group) => Number.parseInt(group, 16)),
  ) as [number[], number[]];
  return [...before, ...Array<number>(8 - before.length - after.length).fill(0), ...after];
}

/** An interface of this machine may have a public address; what listens on it may be meant for this machine only. */
function isOwn(address: string): boolean {
  return Object.values(networkInterfaces()).some((list) => list?.some((one) => one.address === address) === true);
}
