import { z } from 'zod';
import { withAuthenticatedGroup } from '../authentication/authenticator.ts';
import type { User } from '../authentication/user.ts';
import { answered, specOf, text, texts } from './review-body.ts';
import type { VirtualResource } from './virtual-resource.ts';

const GROUP = 'authentication.k8s.io';
const SELF = { group: GROUP, kind: 'SelfSubjectReview' };
const TOKEN = { group: GROUP, kind: 'TokenReview', secret: true };

const tokenSpec = z.object({ token: text, audiences: texts });

/** Who asks, as `kubectl auth whoami` wants to know. */
export const selfSubjectReview: VirtualResource = {
  group: GROUP,
  version: 'v1',
  resource: 'selfsubjectreviews',
  namespaced: false,
  answer(user, body) {
    specOf(SELF, z.unknown().optional(), body);
    return answered(SELF, undefined, { userInfo: userInfo(user) });
  },
};

/**
 * Whose token it is. Tokens here are for no audience in particular, so the answer names none; the token is left out of it.
 * It tells those who may ask whether a token is good, which is why only roles that say so may.
 */
export function tokenReview(userOf: (token: string) => User | undefined | Promise<User | undefined>): VirtualResource {
  return {
    group: GROUP,
    version: 'v1',
    resource: 'tokenreviews',
    namespaced: false,
    async answer(_asking, body) {
      const { token } = specOf(TOKEN, tokenSpec, body);
      const user = await userOf(token);
      if (user === undefined) return answered(TOKEN, {}, { authenticated: false, error: 'the token is not known' });
      return answered(TOKEN, {}, { authenticated: true, user: userInfo(withAuthenticatedGroup(user)) });
    },
  };
}

function userInfo({ name, uid, groups, extra }: User): object {
  return { username: name, ...(uid === undefined ? {} : { uid }), groups, ...(extra === undefined ? {} : { extra }) };
}
