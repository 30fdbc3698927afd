import fc from 'fast-check';
import { expect, test } from 'vitest';
import { runs } from '../../test/support/runs.ts';
import { applyKptfileEdit, contentOf, editKptfile, type KptfileEdit, newKptfile, readKptfile } from '../index.ts';
import { anyEdit, messyKptfile } from '../test/kptfile-arbitrary.ts';

function contentOfText(text: string): unknown {
  const result = readKptfile(text);
  if (!result.ok) throw new Error(result.error.message);
  return contentOf(result.kptfile);
}

test('leaves out status and gates, and an info that holds nothing else', () => {
  const text =
    'apiVersion: kpt.dev/v1\nkind: Kptfile\ninfo:\n  readinessGates: [{conditionType: A}]\nstatus: {}\nextra: 1\n';
  expect(contentOfText(text)).toEqual({ apiVersion: 'kpt.dev/v1', kind: 'Kptfile', extra: 1 });
});

test('keeps everything else', () => {
  expect(contentOfText(newKptfile({ name: 'a', description: 'b', keywords: ['c'] }))).toEqual({
    apiVersion: 'kpt.dev/v1',
    kind: 'Kptfile',
    metadata: { name: 'a', annotations: { 'config.kubernetes.io/local-config': 'true' } },
    info: { description: 'b', keywords: ['c'] },
  });
});

const GATE_EDITS: ReadonlySet<KptfileEdit['op']> = new Set([
  'setCondition',
  'removeCondition',
  'addGate',
  'removeGate',
  'setRenderStatus',
]);

test('edits of conditions, gates and render status never change it; what another edit changes, it shows', () => {
  fc.assert(
    fc.property(messyKptfile, anyEdit, (text, edit) => {
      const before = readKptfile(text);
      if (!before.ok || edit.op === 'removeFunction') return;
      const changed = applyKptfileEdit(before.kptfile, edit);
      const after = contentOfText(editKptfile(text, [edit]));
      expect(after).toEqual(contentOf(changed));
      if (GATE_EDITS.has(edit.op)) expect(after).toEqual(contentOf(before.kptfile));
    }),
    { numRuns: runs(300) },
  );
});
