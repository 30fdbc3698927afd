import { expect, test } from 'vitest';
import { adoptionWarnings } from './adoption-warnings.ts';

const warningsOf = (...reasons: string[]) => adoptionWarnings(reasons.map((reason) => ({ reason })));

test('a publication that the Git host merged past its rules is not called one whose statement was changed', () => {
  for (const reason of ['GateUnmet', 'NotApproved', 'ChangesRequested', 'ForeignFiles'])
    expect(warningsOf(reason)).toEqual([
      '1 of these tags carries a statement that names what was bypassed, as the last column shows; adopt that only if you accept it',
    ]);
});

test('statements that were changed or copied are counted apart, and plain unsigned approvals need no warning', () => {
  expect(warningsOf('UnsignedApproval', 'NotAnApproval')).toEqual([]);
  expect(warningsOf('ContentChanged', 'GateUnmet', 'OtherRevision')).toEqual([
    expect.stringMatching(/^2 of these tags carry a statement that was changed or copied/),
    expect.stringMatching(/^1 of these tags carries a statement that names what was bypassed/),
  ]);
});
