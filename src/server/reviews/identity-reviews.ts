import { z } from 'zod';
import { withAuthenticatedGroup } from '../authentication/authenticator.ts';
import type { User } from '../authentication/user.ts';
import { reviewWithStatus, specOf, text, texts } from './review-body.ts';
import type { VirtualResource } from './virtual-resource.ts';

const GROUP = 'authentication.k8s.io';
const SELF = { group: GROUP, kind: 'SelfSubjectReview' };
const TOKEN = { group: GROUP, kind: 'TokenReview', secret: true };

const tokenSpec = z.object({ token: text, audiences: texts });

/** The caller, for `kubectl auth whoami`. */
export const selfSubjectReview: VirtualResource = {
  group: GROUP,
  version: 'v1',
  resource: 'selfsubjectreviews',
  namespaced: false,
  answer(user, body) {
    specOf(SELF, z.unknown().optional(), body);
    return reviewWithStatus(SELF, undefined, { userInfo: userInfo(user) });
  },
};

/**
 * Returns the user of a token. Tokens of Sluice have no audience, so the status contains none, and it omits the token. The review
 * reveals whether a token is valid, so only roles that allow it may create one.
 */
export function tokenReview(userOf: (token: string) => User | undefined | Promise<User | undefined>): VirtualResource {
  return {
    group: GROUP,
    version: 'v1',
    resource: 'tokenreviews',
    namespaced: false,
    async answer(_caller, body) {
      const { token } = specOf(TOKEN, tokenSpec, body);
      const user = await userOf(token);
      if (user === undefined)
        return reviewWithStatus(TOKEN, {}, { authenticated: false, error: 'the token is not known' });
      return reviewWithStatus(TOKEN, {}, { authenticated: true, user: userInfo(withAuthenticatedGroup(user)) });
    },
  };
}

function userInfo({ name, uid, groups, extra }: User): object {
  return { username: name, ...(uid === undefined ? {} : { uid }), groups, ...(extra === undefined ? {} : { extra }) };
}
