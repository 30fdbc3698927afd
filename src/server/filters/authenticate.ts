import { SluiceError } from '../../foundation/sluice-error.ts';
import { reportAuthenticated } from '../authentication/authenticated-requests.ts';
import type { Authenticator } from '../authentication/authenticator.ts';
import type { Filter } from './filter.ts';

/** Authenticates the sender of the request. Throws Unauthenticated if no credential identifies one. */
export function authenticate(authenticator: Authenticator): Filter {
  return async ({ incoming, found }, next) => {
    const sender = await authenticator.authenticate(incoming);
    if (sender === undefined) throw new SluiceError('Unauthenticated', 'Unauthorized');
    found.sender = sender;
    reportAuthenticated(incoming);
    return next();
  };
}
