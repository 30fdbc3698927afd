import { Gauge, type Registry } from 'prom-client';

/** Adds the metric of leader election, under the name of client-go. */
export function observeLeadership(registry: Registry, leadership: () => ReadonlyMap<string, boolean>): void {
  new Gauge({
    name: 'leader_election_master_status',
    help: 'Whether this process holds the Lease of this name: 1 if it leads, 0 if it is a standby.',
    labelNames: ['name'],
    registers: [registry],
    collect() {
      this.reset();
      for (const [name, leads] of leadership()) this.set({ name }, leads ? 1 : 0);
    },
  });
}

/** Adds the metric of the key that signs statements. */
export function observeSigning(registry: Registry, canSign: () => boolean): void {
  new Gauge({
    name: 'sluice_signing_key_usable',
    help: 'Whether the key that signs statements is there and valid: 1 if so, 0 if packages cannot be changed for lack of it.',
    registers: [registry],
    collect() {
      this.set(canSign() ? 1 : 0);
    },
  });
}
