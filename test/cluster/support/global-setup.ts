import type { TestProject } from 'vitest/node';
import { ControlPlane } from './control-plane.ts';
import { installDefinitions } from './install-definitions.ts';
import { clusterPrograms } from './programs.ts';

/**
 * One control plane for all tests of the project, which work in namespaces of their own; a test that breaks one starts another. It has the
 * definitions of `deploy/crds`.
 */
export default async function setUp(project: TestProject): Promise<() => Promise<void>> {
  const programs = await clusterPrograms((line) => console.log(`cluster: ${line}`));
  const missing = 'missing' in programs;
  const start = Date.now();
  const plane = missing ? undefined : await ControlPlane.start({ programs, controllerManager: true, kwok: true });
  if (plane !== undefined) {
    console.log(`cluster: the control plane started in ${Date.now() - start} ms`);
    try {
      await installDefinitions(plane.kubeconfig);
    } catch (error) {
      await plane.stop();
      throw error;
    }
  }
  project.provide('serverMissing', missing ? `no control plane: ${programs.missing}` : '');
  project.provide('kubeconfig', plane?.kubeconfig ?? '');
  project.provide('gitRepository', '');
  return async () => {
    const keepLogs = project.vitest.state.getCountOfFailedTests() > 0;
    await plane?.stop({ keepLogs });
    if (keepLogs) console.log(`cluster: logs of the control plane: ${plane?.folder}/logs`);
  };
}
