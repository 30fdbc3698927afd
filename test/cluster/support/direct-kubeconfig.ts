import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ControlPlane } from './control-plane.ts';

/** A kubeconfig of the administrator that leads to a replica, without the aggregator and the Service. */
export async function directKubeconfig(plane: ControlPlane, port: number): Promise<string> {
  const config = JSON.parse(await readFile(plane.kubeconfig, 'utf8')) as object;
  const cluster = { server: `https://127.0.0.1:${port}`, 'insecure-skip-tls-verify': true };
  const path = join(plane.folder, `direct-${port}.kubeconfig`);
  await writeFile(path, JSON.stringify({ ...config, clusters: [{ name: 'cluster', cluster }] }), { mode: 0o600 });
  return path;
}
