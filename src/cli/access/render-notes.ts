import type { packageRevisionResourcesKind } from '../../resource/kinds/porch/package-revision-resources.ts';
import type { ObjectOf } from '../../resource/schema/kind.ts';

type RenderStatus = NonNullable<ObjectOf<typeof packageRevisionResourcesKind>['status']>['renderStatus'];

/** What a server says of the functions that it ran, in the lines of porchctl. */
export function renderNotes(status: RenderStatus): string[] {
  const lines = (status?.result?.items ?? []).flatMap(
    ({ image = '', exec = '', exitCode = 0, stderr = '', results }) => {
      const name = JSON.stringify(image || exec);
      const found = (results ?? []).map(({ severity = '', message = '' }) => `  [${severity}] ${message}`);
      const failure = exitCode === 0 || stderr === '' ? [] : [`  Stderr: ${JSON.stringify(stderr)}`];
      return [`[RUNNING] ${name}`, `[${exitCode === 0 ? 'PASS' : 'FAIL'}] ${name}`, ...found, ...failure];
    },
  );
  return status?.error === undefined || status.error === '' ? lines : [...lines, status.error];
}
