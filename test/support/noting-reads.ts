import type { Client } from '../../src/resource/client/client.ts';

/** A client that reports the name of each object of a kind that `find` is called for: a reconciliation begins with that. */
export function notingReads(client: Client, kind: { readonly kind: string }, note: (name: string) => void): Client {
  return new Proxy(client, {
    get: (object, property) => {
      if (property === 'as') return (...as: Parameters<Client['as']>) => notingReads(object.as(...as), kind, note);
      const value = Reflect.get(object, property) as unknown;
      if (property !== 'find' || typeof value !== 'function')
        return typeof value === 'function' ? value.bind(object) : value;
      return (...request: Parameters<Client['find']>) => {
        if (request[0].kind === kind.kind) note(request[1].name);
        return value.apply(object, request);
      };
    },
  });
}
