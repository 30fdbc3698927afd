import { Gauge, type Registry } from 'prom-client';

/** A Freeze that is in force. */
export interface FreezeCount {
  readonly namespace: string;
  readonly name: string;
  /** Whether it is in force in all namespaces. */
  readonly isInstallation: boolean;
}

/** Adds the metric of freezes in force. */
export function observeFreezes(registry: Registry, freezes: () => Iterable<FreezeCount>): void {
  new Gauge({
    name: 'sluice_frozen',
    help: 'Freezes in force, which stop approvals and deliveries of their namespace, or with the scope Installation of all namespaces.',
    labelNames: ['namespace', 'name', 'scope'],
    registers: [registry],
    collect() {
      this.reset();
      for (const { namespace, name, isInstallation } of freezes())
        this.set({ namespace, name, scope: isInstallation ? 'Installation' : 'Namespace' }, 1);
    },
  });
}
