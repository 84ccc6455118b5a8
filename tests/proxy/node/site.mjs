// A site that speaks HTTP/2 as well as HTTP/1.1 over TLS. Arguments: the file with key and certificate, and the port.

import { readFileSync } from 'node:fs';
import { createSecureServer } from 'node:http2';

const [, , pem, port] = process.argv;
const site = readFileSync(pem);

createSecureServer({ key: site, cert: site, allowHTTP1: true }, (request, response) => {
    response.end(`hello over https and HTTP/${request.httpVersionMajor}`);
}).listen(Number(port), '127.0.0.1');
