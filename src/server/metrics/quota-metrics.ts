import { Counter, Gauge, type Registry } from 'prom-client';
import type { NamespaceQuota } from '../../resource/storage/memory/namespace-quota.ts';

/** Namespaces that are shown by name, those with the most bytes; clients can create any number. */
const MAX_NAMESPACES = 100;

/** Adds the metrics of the size of namespaces. */
export function observeQuota(registry: Registry, quota: () => Pick<NamespaceQuota, 'usage' | 'exceeded'>): void {
  const registers = [registry];
  const largest = () =>
    quota()
      .usage()
      .sort((a, b) => b.bytes - a.bytes)
      .slice(0, MAX_NAMESPACES);
  new Gauge({
    name: 'sluice_namespace_objects',
    help: 'Objects stored by namespace; of the 100 largest.',
    labelNames: ['namespace', 'resource'],
    registers,
    collect() {
      this.reset();
      for (const { namespace, resource, objects } of largest()) this.set({ namespace, resource }, objects);
    },
  });
  new Gauge({
    name: 'sluice_namespace_bytes',
    help: 'About the bytes of these objects.',
    labelNames: ['namespace', 'resource'],
    registers,
    collect() {
      this.reset();
      for (const { namespace, resource, bytes } of largest()) this.set({ namespace, resource }, bytes);
    },
  });
  new Counter({
    name: 'sluice_quota_exceeded_total',
    help: 'Writes that were refused because of the quota of a namespace.',
    registers,
    collect() {
      this.reset();
      this.inc(quota().exceeded);
    },
  });
}
