import { promises as dns } from 'node:dns';
import type { LookupFunction } from 'node:net';
import type { Endpoint, HostRules } from './host-rules.ts';

/**
 * Resolves the host of an endpoint once for each connection and checks it: the connection uses this result, even if the name resolves
 * differently a moment later. An endpoint with an address instead of a name is not looked up; see `HostRules.isRefused`.
 */
export function checkedLookup(hosts: HostRules, endpoint: Endpoint): LookupFunction {
  return (host, options, callback) => {
    void hosts
      .addresses(endpoint)
      .then((checked) => checked ?? dns.lookup(host, { all: true }))
      .then(
        (addresses) => {
          const { family } = options;
          const wanted = family === 4 || family === 6 ? addresses.filter((one) => one.family === family) : addresses;
          const [first] = wanted.length > 0 ? wanted : addresses;
          if (options.all === true) callback(null, [...addresses]);
          else callback(null, first?.address ?? '', first?.family);
        },
        (error: NodeJS.ErrnoException) => callback(error, '', 0),
      );
  };
}
