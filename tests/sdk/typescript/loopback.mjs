// Loaded before a server that would listen on every address: it listens on the loopback one.

import { Server } from 'node:net';

const listen = Server.prototype.listen;
Server.prototype.listen = function (options, ...rest) {
    const isPort = typeof options === 'string' || typeof options === 'number';
    return listen.call(this, isPort ? { port: Number(options), host: '127.0.0.1' } : options, ...rest);
};
