import { expect, test } from 'vitest';
import { orderSteps } from './order-steps.ts';

const key = { repository: 'apps', package: 'web', workspace: 'w1' };
const NAME = 'apps.web.w1';
const REPAIR = [`sluice rpkg pull ${NAME} web-w1`, 'edit the files in web-w1', `sluice rpkg push ${NAME} web-w1`];
const REJECT = `sluice rpkg reject ${NAME}`;
const REBASE = `sluice rpkg rebase ${NAME}`;
const PROPOSE = `sluice rpkg propose ${NAME}`;
const SET = `sluice rpkg condition set ${NAME} example.com/Tested True`;

test.each<['Draft' | 'Proposed', string, readonly string[], readonly string[]]>([
  [
    'Proposed',
    'a conflict, and files that no target delivers',
    [REJECT, REBASE, PROPOSE, `${REJECT} --reason 'it is wrong'`, ...REPAIR],
    [REJECT, REBASE, ...REPAIR, PROPOSE],
  ],
  [
    'Proposed',
    'a resolver that reports invalid files, and the step of another gate',
    [SET, `${REJECT} --reason x`, ...REPAIR, 'sluice up'],
    [SET, `${REJECT} --reason x`, ...REPAIR, 'sluice up', PROPOSE],
  ],
  ['Proposed', 'a package that ends', [REJECT, `sluice rpkg del ${NAME}`], [REJECT, `sluice rpkg del ${NAME}`]],
  ['Proposed', 'nothing to repair', ['sluice up', PROPOSE], ['sluice up', PROPOSE]],
  ['Draft', 'a conflict, and files to repair', [...REPAIR, PROPOSE, REBASE], [REBASE, ...REPAIR, PROPOSE]],
  ['Draft', 'files to repair, and a gate', [...REPAIR, SET, PROPOSE, REPAIR[0] ?? ''], [...REPAIR, SET, PROPOSE]],
  ['Draft', 'nothing to repair', ['sluice up', PROPOSE], ['sluice up', PROPOSE]],
])('the steps of a %s: %s', (lifecycle, _what, findings, expected) => {
  expect(orderSteps({ key, lifecycle, name: NAME }, findings)).toEqual(expected);
});
