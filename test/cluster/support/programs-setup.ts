import type { TestProject } from 'vitest/node';
import { clusterPrograms } from './programs.ts';

/** Builds the programs, for tests that start control planes of their own. */
export default async function setUp(project: TestProject): Promise<void> {
  const programs = await clusterPrograms((line) => console.log(`cluster: ${line}`));
  project.provide('serverMissing', 'missing' in programs ? `no control plane: ${programs.missing}` : '');
}
