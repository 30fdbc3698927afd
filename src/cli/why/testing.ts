import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect } from 'vitest';
import { type CliFixture, cliFixture } from '../testing.ts';

/** Of the test that runs. */
export let cli: CliFixture;

/** Gives each test of a file a data folder with the repository `packages`, where approvals by the Kptfile are permitted. */
export function useRepository(): void {
  beforeEach(async () => {
    cli = await cliFixture();
    expect((await cli.run('repo', 'reg', cli.bare('packages.git'))).code).toBe(0);
    await register(
      'apiVersion: sluice.dev/v1alpha1\nkind: PackagePolicy\nmetadata: {name: lax}\nspec: {kptfileApprovals: true}\n',
    );
  });
  afterEach(() => cli[Symbol.asyncDispose]());
}

export const up = (...words: string[]) => cli.run('up', '--until-idle', ...words);

/** A draft `packages.web.<workspace>` with these annotations in its Kptfile. */
export async function draft(annotations: Record<string, string>, workspace = 'v1'): Promise<string> {
  const name = `packages.web.${workspace}`;
  await cli.run('rpkg', 'init', 'web', '--repository', 'packages', '--workspace', workspace);
  await annotate(name, annotations);
  return name;
}

export async function annotate(name: string, annotations: Record<string, string>): Promise<void> {
  const folder = join(cli.folder, name);
  await cli.run('rpkg', 'pull', name, folder);
  const lines = Object.entries(annotations).map(([key, value]) => `    ${key}: ${JSON.stringify(value)}\n`);
  const kptfile = `apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: web\n  annotations:\n${lines.join('')}`;
  await writeFile(join(folder, 'Kptfile'), kptfile);
  expect((await cli.run('rpkg', 'push', name, folder)).code).toBe(0);
}

export async function reasons(name: string): Promise<{ reason: string; message: string }[]> {
  return (JSON.parse((await cli.run('why', name, '-o', 'json')).stdout) as WhyOutput).reasons;
}

export interface WhyOutput {
  readonly reasons: { reason: string; message: string }[];
  readonly delivery: { target: string; state: string; message: string }[];
  readonly next: string[];
}

export async function register(text: string): Promise<void> {
  await mkdir(join(cli.folder, 'conf'), { recursive: true });
  await writeFile(join(cli.folder, 'conf', 'more.yaml'), text);
  await up('--config', join(cli.folder, 'conf'));
}
