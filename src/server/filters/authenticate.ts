import { SluiceError } from '../../foundation/sluice-error.ts';
import type { Authenticator } from '../authentication/authenticator.ts';
import type { Filter } from './filter.ts';

/** Finds out which user sent the request. Unauthenticated if nothing proves one. */
export function authenticate(authenticator: Authenticator): Filter {
  return async ({ incoming, found }, next) => {
    const sender = await authenticator.authenticate(incoming);
    if (sender === undefined) throw new SluiceError('Unauthenticated', 'Unauthorized');
    found.sender = sender;
    return next();
  };
}
