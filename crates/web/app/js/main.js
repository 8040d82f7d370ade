// Where the page starts.
document.title = 'greenroom';
