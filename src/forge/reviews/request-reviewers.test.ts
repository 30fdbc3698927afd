import { expect, test } from 'vitest';
import { SluiceError } from '../../foundation/sluice-error.ts';
import { notFoundText } from '../http/error-texts.ts';
import { requestReviewers } from './request-reviewers.ts';

test('a reviewer that the host does not know is named without advice about the API', async () => {
  const message = `POST https://git.example.com/x: status 404; user does not exist; ${notFoundText('Secret default/forge')}`;
  const refused = await requestReviewers({ users: ['ghost'], teams: [] }, async () => {
    throw new SluiceError('NotFound', message);
  });
  const reason = 'the host has not found it: POST https://git.example.com/x: status 404; user does not exist';
  expect(refused).toEqual([{ name: 'ghost', reason }]);
});
